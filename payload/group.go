package payload

// Group is the control group that a payload is to have (cgroups(7)). Only a backend without containers makes one: a container has its own.
type Group struct {
	// Name tells it from those of other slots.
	Name string
	// CPUWeight is the payload's share of the CPUs when they are contended, as in cpu.weight; 0: the kernel's default.
	CPUWeight int64
	// MemoryMax is the memory that the payload may use, in bytes; 0: no limit. MemoryLow is how much of it the kernel spares when the
	// machine is short of memory; 0: none.
	MemoryMax, MemoryLow int64
	// NoSwap forbids the payload swap space. It has no effect without MemoryMax.
	NoSwap bool
}
