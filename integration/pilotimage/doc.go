// Package pilotimage tests the image that deploy/image/Dockerfile makes: that what was left out of it is not missed. Its pool:
// up --dockerfile. Jobs in it are run by tests of integration/e2e; `make image` names them.
package pilotimage
