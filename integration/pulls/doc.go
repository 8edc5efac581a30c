// Package pulls tests what jobs notice of the pulls of others in the same pod, with and
// without pullers. Its pool: up --slots 2 --pullers 1.
package pulls
