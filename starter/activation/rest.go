package activation

// Rest is a process that waits for the end of a job.
type Rest struct {
	GiveBack func() // returns memory to the system that is not needed now
	End      func() // the job has ended: speed counts again
}

// rest begins a rest.
func (o Options) rest() Rest {
	if o.Rest == nil {
		return Rest{GiveBack: func() {}, End: func() {}}
	}
	return o.Rest()
}
