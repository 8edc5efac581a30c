package agent_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/payload/memcg"
	"podstarter/wrapper/agent/agenttest"
)

// memoryLimit leaves room for a wrapper that was built with the race detector.
const memoryLimit = 256 << 20

// TestOutOfMemory: the kernel kills for want of memory, the job or wrapper and all. What the
// starter finds in the files that it got tells so, with the limit and the peak, and of a job that
// does not leap, what the memory was.
func TestOutOfMemory(t *testing.T) {
	for _, how := range []string{"slowly", "leap", "shared", "cached", "crowd"} {
		for kill, whole := range map[string]bool{"alone": false, "whole": true} {
			t.Run(how+" "+kill, func(t *testing.T) {
				g := agenttest.NewMemoryGroup(t, memoryLimit, whole)
				w := agenttest.StartWrapper(t, g.Join)
				c := w.Dial(t)
				if _, err := c.Usage(agenttest.Context(t)); err != nil {
					t.Fatal(err)
				}
				files := c.Memory()
				if _, known := files.Figures(); !known {
					t.Fatal("there is nothing to look at")
				}
				files.Begin()
				start(t, c, agenttest.Spec(t, "eat", how))
				watch := memcg.NewWatch(files, 250*time.Millisecond)
				exit, err := c.Wait(agenttest.Context(t))
				found := watch.Stop()
				t.Logf("%d of %d bytes; %d own and %d cached %s before", found.Peak, found.Limit, found.Last.Own(), found.Last.Cache, found.End.Sub(found.Last.At))
				switch {
				case whole && !errors.Is(err, payload.ErrLost):
					t.Errorf("%+v, %v, though all were to be killed", exit, err)
				case !whole && (err != nil || exit.OOMKills == 0):
					t.Errorf("%+v, %v", exit, err)
				}
				if found.OOMKills <= 0 || found.Elsewhere || found.Limit != memoryLimit || found.Peak < memoryLimit/10*9 || found.Peak > memoryLimit/10*11 {
					t.Errorf("%+v", found)
				}
				if seen := found.Last.Own() + found.Last.Cache; how != "leap" && seen < memoryLimit/2 || seen > memoryLimit/10*11 {
					t.Errorf("%d bytes were seen before the kill: %+v", seen, found.Last)
				}
				if whole {
					if now, known := files.Figures(); !known || now.OOMKills <= 0 {
						t.Errorf("the files tell nothing any more: %+v", now)
					}
				}
			})
		}
	}
}

// TestMemoryIsThePayloads: a wrapper that shares its place with other programs offers nothing.
func TestMemoryIsThePayloads(t *testing.T) {
	for name, companion := range map[string]bool{"alone": false, "a companion": true} {
		t.Run(name, func(t *testing.T) {
			g := agenttest.NewMemoryGroup(t, memoryLimit, false)
			w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
				if companion {
					cmd.Args = append(cmd.Args, "-companion")
				}
				g.Join(cmd)
			})
			c := w.Dial(t)
			if _, err := c.Usage(agenttest.Context(t)); err != nil {
				t.Fatal(err)
			}
			if offered := c.Memory() != nil; offered == companion {
				t.Errorf("companion %t, offered %t", companion, offered)
			}
		})
	}
}

// TestPeakAnew: where the kernel can begin its peak anew, a run's is its own.
func TestPeakAnew(t *testing.T) {
	g := agenttest.NewMemoryGroup(t, memoryLimit, false)
	if g.Version() == 1 {
		t.Skip("version 1 has one peak for all")
	}
	w := agenttest.StartWrapper(t, g.Join)
	c := w.Dial(t)
	var peaks []int64
	for _, size := range []string{"150000000", "1000"} {
		c.Memory().Begin()
		start(t, c, agenttest.Spec(t, "memory", size))
		exit, err := c.Wait(agenttest.Context(t))
		if err != nil || exit.Cgroup == nil {
			t.Fatalf("%+v, %v", exit, err)
		}
		now, _ := c.Memory().Figures()
		if now.Peak != exit.Cgroup.MemoryPeak {
			t.Errorf("the wrapper says %d, the starter sees %d", exit.Cgroup.MemoryPeak, now.Peak)
		}
		peaks = append(peaks, now.Peak)
	}
	if peaks[0] < 150_000_000 || peaks[1] >= 150_000_000 {
		t.Errorf("peaks of the two runs: %d", peaks)
	}
}
