// Package vmuniverse runs jobs of the vm universe beside the stock starter, on a machine that needs no KVM: it has the processes of a root file
// system of its own (integration/pool/vmroot). The tests need root and no pool.
package vmuniverse
