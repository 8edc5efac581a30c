// Mutants checks the unit tests: it puts one mistake at a time into the product and
// expects a test to fail. A mistake that no test notices has survived.
//
//	mutants [-v] [-all] [-limit TIME] [-area AREA] [NAME ...]
//
// The tree is not changed: the mistake is in a copy that `go test -overlay` uses. The
// tests run as an ordinary user, without root and without a pool; root gives up its
// rights for them. First they run without any mistake, and must pass.
package main
