// Package resources counts what jobs request and what pods have.
package resources

import "fmt"

// Amount is an amount of the resources by which HTCondor's jobs and slots are
// measured. Its units are HTCondor's (RequestCpus, RequestMemory, RequestDisk,
// RequestGPUs of the job, and Cpus, Memory, Disk, GPUs of the slot).
type Amount struct {
	CPUs   int64
	Memory int64 // MiB
	Disk   int64 // KiB
	GPUs   int64
	// Payloads are payload containers, each of which runs one job at a time (Payloads
	// of a partitionable slot). Where jobs take none, a pod has 0.
	Payloads int64
}

// fields lists the parts of an amount, so that no operation forgets one.
func (a Amount) fields() [5]int64 { return [5]int64{a.CPUs, a.Memory, a.Disk, a.GPUs, a.Payloads} }

func of(f [5]int64) Amount {
	return Amount{CPUs: f[0], Memory: f[1], Disk: f[2], GPUs: f[3], Payloads: f[4]}
}

// Plus returns the sum of both.
func (a Amount) Plus(b Amount) Amount {
	x, y := a.fields(), b.fields()
	for i := range x {
		x[i] += y[i]
	}
	return of(x)
}

// Minus returns what is left of a without b. It does not go below zero.
func (a Amount) Minus(b Amount) Amount {
	x, y := a.fields(), b.fields()
	for i := range x {
		x[i] = max(x[i]-y[i], 0)
	}
	return of(x)
}

// Least returns the smaller of both, part by part.
func (a Amount) Least(b Amount) Amount {
	x, y := a.fields(), b.fields()
	for i := range x {
		x[i] = min(x[i], y[i])
	}
	return of(x)
}

// Most returns the larger of both, part by part.
func (a Amount) Most(b Amount) Amount {
	x, y := a.fields(), b.fields()
	for i := range x {
		x[i] = max(x[i], y[i])
	}
	return of(x)
}

// Fits reports whether a has room for b.
func (a Amount) Fits(b Amount) bool {
	x, y := a.fields(), b.fields()
	for i := range x {
		if y[i] > x[i] {
			return false
		}
	}
	return true
}

// Times returns how often a has room for b, at most limit times.
func (a Amount) Times(b Amount, limit int64) int64 {
	x, y := a.fields(), b.fields()
	n := limit
	for i := range x {
		if y[i] > 0 {
			n = min(n, x[i]/y[i])
		}
	}
	return max(n, 0)
}

// Use returns which part of a is in use when b is used of it: the mean over its
// CPUs, memory and GPUs. Disk does not count, since nobody pays for it apart.
func (a Amount) Use(b Amount) float64 {
	use, kinds := 0.0, 0.0
	for _, r := range [][2]int64{{a.CPUs, b.CPUs}, {a.Memory, b.Memory}, {a.GPUs, b.GPUs}} {
		if r[0] > 0 {
			use, kinds = use+float64(r[1])/float64(r[0]), kinds+1
		}
	}
	if kinds == 0 {
		return 0
	}
	return use / kinds
}

// String writes the amount as reasons and pages show it.
func (a Amount) String() string {
	text := fmt.Sprintf("%d CPUs, %d MiB memory, %d KiB disk", a.CPUs, a.Memory, a.Disk)
	if a.GPUs > 0 {
		text += fmt.Sprintf(", %d GPUs", a.GPUs)
	}
	if a.Payloads > 0 {
		text += fmt.Sprintf(", %d payload containers", a.Payloads)
	}
	return text
}
