// Package addresses has tests of the addresses that starters choose and tell: execution points with the stock starter and with ours, each in
// a network namespace of its own, beside access points that have several addresses. They need no pool; they start all that they need.
package addresses
