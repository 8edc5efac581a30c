// Package shown finds what shows that a verdict on one of stock's names is true: conformance cases that set the name or look at it, which
// run under both starters, and other tests that name it. What cannot be found so is said by hand, in a [Book].
//
// That a test names something does not prove that it fails without it: make mutants asks that. What no test names, though,
// no test shows.
package shown
