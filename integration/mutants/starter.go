package main

// Mistakes in the starter.
var starterMutants = []mutant{}
