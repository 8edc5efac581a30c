package payloadrun

import (
	"math"
	"strings"

	"podstarter/classads"
	"podstarter/localexec/group"
	"podstarter/payload"
	"podstarter/starter/settings"
)

// Knobs about control groups on a machine without a pod (vanilla_proc.cpp:StartJob).
const (
	knobBaseGroup   = "BASE_CGROUP"
	knobWithoutRoot = "CREATE_CGROUP_WITHOUT_ROOT"
	knobPolicy      = "CGROUP_MEMORY_LIMIT_POLICY"
	knobHardLimit   = "CGROUP_HARD_MEMORY_LIMIT_EXPR"
	knobLowLimit    = "CGROUP_LOW_MEMORY_LIMIT"
	knobDisableSwap = "DISABLE_SWAP_FOR_JOB"
)

const mebibyte = 1 << 20

// GroupsOf says where jobs get control groups. A value that is not understood is as good as none, as with stock.
func GroupsOf(s settings.Settings) group.Site {
	without, _ := s.Config.Bool(knobWithoutRoot, false)
	return group.Site{Base: strings.TrimSpace(s.Config.String(knobBaseGroup, "")), WithoutRoot: without}
}

// SlotSize is what the startd provisioned the slot with.
func (j *Job) SlotSize() payload.Size {
	memory := inMebibytes(j.Machine.IntOr("Memory", 0))
	cpus := j.Machine.RealOr("Cpus", 0)
	if !(cpus > 0 && cpus < math.MaxInt32) {
		cpus = 0
	}
	return payload.Size{MilliCPU: int64(math.Round(cpus * 1000)), Memory: memory}
}

// inMebibytes gives bytes; 0 for what is not an amount.
func inMebibytes(n int64) int64 {
	if n < 0 || n > math.MaxInt64/mebibyte {
		return 0
	}
	return n * mebibyte
}

// Group is the control group that the job is to have; nil in a pod, where the kubelet makes it, and without BASE_CGROUP.
func (j *Job) Group() *payload.Group {
	if j.Settings.InPod() || GroupsOf(j.Settings).Base == "" {
		return nil
	}
	cfg := j.Settings.Config
	size := j.SlotSize()
	g := &payload.Group{CPUWeight: max(size.MilliCPU/10, 10)} // 100 for each CPU
	execute, slot := j.Settings.Condor.Execute, j.Machine.StringOr("Name", "")
	if slot == "" {
		slot = j.Name
	}
	g.Name = execute + "_" + slot
	switch cfg.String(knobPolicy, "hard") {
	case "hard":
		g.MemoryMax = size.Memory
	case "custom":
		limit, ok := j.megabytes(knobHardLimit)
		if !ok {
			j.Log.Warn("A knob does not give a number of megabytes for this job, which has no limit of memory", "knob", knobHardLimit)
		}
		g.MemoryMax = limit
	}
	g.MemoryLow, _ = j.megabytes(knobLowLimit)
	off, err := cfg.Bool(knobDisableSwap, true)
	if err != nil {
		j.Log.Warn("A knob is not understood, its default holds", "error", err)
	}
	g.NoSwap = off
	return g
}

// megabytes is the value of a knob that is an expression over the slot's ad (MY) and the job's (TARGET), in bytes.
func (j *Job) megabytes(knob string) (bytes int64, ok bool) {
	e, err := j.Settings.Config.Expr(knob)
	if err != nil || e == nil {
		return 0, false
	}
	value := e.Eval(classads.Env{My: j.Machine, Target: j.Ad})
	if n, is := value.Int(); is {
		return inMebibytes(n), true
	}
	if r, is := value.Real(); is && r >= 0 && r < math.MaxInt32 {
		return inMebibytes(int64(r)), true
	}
	return 0, false
}
