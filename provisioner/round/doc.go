// Package round does the provisioner's work once: it asks what is there and what
// is wanted, decides, and acts. A provisioner is a series of rounds.
//
// What a round remembers for the next one may be lost at any time. What must not
// be lost is with the platform: which units there are, for which template, and
// how those that ended came to their end.
package round
