// Package e2e holds the tests on a real cluster and a real pool. They need what
// `make pool-up` starts, and fail without it: a test that is skipped proves
// nothing.
//
// With -side=stock every test that the stock starter can also pass runs there.
// That tells a fault of a test from one of our starter.
package e2e
