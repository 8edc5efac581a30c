package main

// Mistakes in the sandbox.
var sandboxMutants = []mutant{}
