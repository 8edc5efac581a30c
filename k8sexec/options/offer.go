package options

// Size is so much of a node; 0 is not known.
type Size struct {
	CPUs     float64
	MemoryMB int64 // MiB
	DiskKB   int64 // KiB
}

// Offer is what slots offer to jobs. The checks compare it with what payload containers may use.
type Offer struct {
	// Job is the most that one job can get.
	Job Size
	// All is what jobs can get together.
	All Size
}
