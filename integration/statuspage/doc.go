// Package statuspage tests the provisioner's status page in a real browser: that an operator can read it on a screen and on
// a telephone, and that no name which somebody chose becomes a part of the page.
package statuspage
