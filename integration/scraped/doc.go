// Package scraped has Prometheus itself read what the provisioner says at /metrics, and evaluate the alerts of deploy/. It is a module of its
// own, since Prometheus' libraries are many, and no part of the default tests:
//
//	go -C integration/scraped test -count=1 .
package scraped
