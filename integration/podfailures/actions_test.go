//go:build pool

package podfailures

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

const readyName = facts.Ready

// action causes a row's failure. Then the test waits for its job.
type action struct {
	do func(context.Context, *stage) error
	// after checks what shows only after the outcome.
	after func(context.Context, *stage) error
	// first rows need a pod in which no job has run; last ones leave no such pod; alone ones allow no other pull at the
	// same time.
	first, last, alone bool
	// nowhere says that no pod can have the image.
	nowhere bool
}

// asks submits a job in an image of the test's registry.
func asks(kind string) action {
	return action{do: func(ctx context.Context, s *stage) error { return s.submit(ctx, s.image(kind), "exit=0") }}
}

// outlived submits a job in a hostile image. After it the pod must run another job.
func outlived(kind string) action {
	a := asks(kind)
	a.after = runsOn
	return a
}

// runsOn demands that the pod runs a job in a good image.
func runsOn(ctx context.Context, s *stage) error {
	next := *s
	next.cleanup = nil
	defer next.over()
	if err := next.submit(ctx, s.image("good"), "exit=0"); err != nil {
		return fmt.Errorf("submitting a job in a good image: %w", err)
	}
	_, err := next.job.WaitEvents(ctx, "the end of a job in a good image", func(events []harness.Event) bool {
		var ok bool
		next.outcome, ok = OutcomeOf(events)
		return ok
	})
	if err != nil {
		return err
	}
	if got := next.outcome.String(); got != "exit 0" {
		return fmt.Errorf("a job in a good image ended with %s: %s\n%s", got, next.outcome.Words, next.job.Describe())
	}
	return nil
}

// asksFor submits a job in any image.
func asksFor(image func(*stage) string) action {
	return action{do: func(ctx context.Context, s *stage) error { return s.submit(ctx, image(s), "exit=0") }}
}

// faulty is an image of the pool's registry, under a name at which that fails on purpose.
func faulty(kind string) action {
	return asksFor(func(s *stage) string {
		address, _, _ := strings.Cut(s.pool.Image("busybox"), "/")
		return address + "/" + kind + "/" + s.slug() + ":1"
	})
}

func soon(seconds int, a action) action {
	do := a.do
	a.do = func(ctx context.Context, s *stage) error {
		if err := s.hurry(ctx, seconds); err != nil {
			return err
		}
		return do(ctx, s)
	}
	return a
}

// said makes the pod report something while an image is pulled that never arrives.
func said(rule func(image string) func(map[string]any)) action {
	return action{do: func(ctx context.Context, s *stage) error {
		image := s.image("hold")
		s.later(func() { s.good.Release(s.slug() + "-" + s.run) })
		s.proxy.Set(s.Pod, Rule{Pod: rule(image)})
		return s.submit(ctx, image, "exit=0")
	}}
}

func waits(reason, message string) action {
	return said(func(image string) func(map[string]any) { return Waiting(image, reason, message) })
}

// answered makes the API server give another answer.
func answered(kind string, answer func(verb string, n int) *Refusal) action {
	return action{do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Answer: answer})
		return s.submit(ctx, s.image(kind), "exit=0")
	}}
}

// to is a refusal of one verb.
func to(verb string, r Refusal) func(string, int) *Refusal {
	return func(v string, _ int) *Refusal {
		if v != verb {
			return nil
		}
		return &r
	}
}

// under makes something happen to a running job.
func under(steps string, happens func(context.Context, *stage) error) action {
	return action{do: func(ctx context.Context, s *stage) error {
		if _, err := s.start(ctx, s.image("good"), steps, "when_to_transfer_output = ON_EXIT_OR_EVICT"); err != nil {
			return err
		}
		return happens(ctx, s)
	}}
}

// killed kills the wrapper, and makes the pod report a reason for it.
func killed(change func(map[string]any)) action {
	return under("ready forever", func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Pod: change})
		return s.hit(ctx, unix.SIGKILL)
	})
}

// asked takes the pod away, and demands that the job was asked to end.
func asked(take func(context.Context, *stage) error) action {
	a := under("trap=caught:3 ready forever", take)
	a.last = true
	a.after = caught
	return a
}

// caught demands that the note which the evicted job wrote when it was asked to end went to the access point.
func caught(ctx context.Context, s *stage) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	spooled := ""
	err := harness.Poll(ctx, "what the job wrote when it was asked to end", func() (bool, error) {
		ad, err := s.job.Ad(ctx)
		if err == nil {
			spooled = ad.StringOr("SpooledOutputFiles", "")
		}
		return strings.Contains(spooled, "caught"), err
	})
	if err != nil {
		return fmt.Errorf("%w; what went back is %q", err, spooled)
	}
	return nil
}

var actions = map[string]action{
	"unknown name": asksFor(func(s *stage) string {
		image := s.pool.Image("busybox")
		return image[:strings.LastIndexByte(image, '/')] + "/no-such-image:1"
	}),
	"unknown tag": asksFor(func(s *stage) string {
		image := s.pool.Image("busybox")
		return image[:strings.LastIndexByte(image, ':')] + ":no-such-tag"
	}),
	"unauthorized":       faulty("unauthorized"),
	"denied":             faulty("forbidden"),
	"other architecture": asks("arch"),
	"invalid reference":  asksFor(func(*stage) string { return "UPPER/Case:::tag" }),
	"site policy": {do: func(ctx context.Context, s *stage) error {
		if err := s.configure(ctx, "POD_STARTER_IMAGES_DENIED = */not-here/*"); err != nil {
			return err
		}
		return s.submit(ctx, "127.0.0.1:1/not-here/x:1", "exit=0")
	}},
	"layer is no archive":              asks("garbage"),
	"signature":                        waits("SignatureValidationFailed", "image pull failed for x because the signature validation failed"),
	"rate limit":                       nowhere(faulty("toomany")),
	"registry not trusted":             nowhere(asksFor(func(s *stage) string { return s.secure.Image("good", "x") })),
	"registry's name does not resolve": nowhere(asksFor(func(*stage) string { return "registry.invalid/no/where:1" })),
	"registry refuses connections":     nowhere(asksFor(func(*stage) string { return "127.0.0.1:1/no/where:1" })),
	"registry fails":                   nowhere(faulty("broken")),
	"registry down":                    nowhere(faulty("down")),
	"registry unavailable":             soon(4, waits("RegistryUnavailable", "image pull failed for x because the registry is unavailable")),
	"connection breaks off in a layer": nowhere(asks("cut")),
	"slow pull":                        asks("slow"),
	"hung pull":                        soon(5, said(func(string) func(map[string]any) { return nil })),

	"disk full":                                            {do: fillDisk, alone: true},
	"never pull":                                           waits("ErrImageNeverPull", `Container image "x" is not present with pull policy of Never`),
	"container cannot be configured":                       soon(20, waits("CreateContainerConfigError", `secret "x" not found`)),
	"container cannot be created":                          soon(20, waits("CreateContainerError", "context deadline exceeded")),
	"file in the place of a mount":                         asks("mount"),
	"link on the way to the control directory":             outlived("run-link"),
	"link to /proc":                                        outlived("run-proc"),
	"closed directory on the way to the control directory": outlived("run-closed"),
	"volume of the image's over the control directory":     outlived("volume"),
	"volume of the image's over the wrapper":               outlived("volume-link"),
	"variable too long":                                    outlived("variable"),
	"variable that ends the wrapper":                       outlived("go-variable"),
	"wrapper lost": {do: func(ctx context.Context, s *stage) error {
		if err := runsOn(ctx, s); err != nil {
			return err
		}
		if err := s.replaceWrapper(ctx, ""); err != nil {
			return err
		}
		return s.submit(ctx, s.image("large"), "exit=0")
	}},
	"wrapper missing": {first: true, do: func(ctx context.Context, s *stage) error {
		if err := s.replaceWrapper(ctx, ""); err != nil {
			return err
		}
		return s.submit(ctx, s.image("good"), "exit=0")
	}},
	"wrapper crashes": {do: func(ctx context.Context, s *stage) error {
		if err := s.replaceWrapper(ctx, "probe"); err != nil {
			return err
		}
		return s.submit(ctx, s.image("good"), "exit=0")
	}},
	"wrapper silent": {do: func(ctx context.Context, s *stage) error {
		if err := s.replaceWrapper(ctx, "pause"); err != nil {
			return err
		}
		return s.submit(ctx, s.image("good"), "exit=0")
	}},
	"program missing in the image": {do: func(ctx context.Context, s *stage) error {
		return s.submit(ctx, s.image("good"), "exit=0", "executable = /no/such/program", "transfer_executable = false")
	}},
	"program of another architecture": {do: func(ctx context.Context, s *stage) error {
		return s.submit(ctx, s.image("lies"), "exit=0", "executable = /program", "transfer_executable = false")
	}},

	"admission policy":       nowhere(asksFor(func(*stage) string { return "127.0.0.1:1/" + deniedByPolicy + "/x:1" })),
	"admission webhook":      nowhere(asksFor(func(*stage) string { return "127.0.0.1:1/" + deniedByHook + "/x:1" })),
	"admission webhook away": nowhere(soon(4, asksFor(func(*stage) string { return "127.0.0.1:1/" + hookAway + "/x:1" }))),
	"forbidden": {do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Token: s.foreign})
		return s.submit(ctx, s.image("good"), "exit=0")
	}},
	"token not accepted": {do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Token: "made-up"})
		return s.submit(ctx, s.image("good"), "exit=0")
	}},
	"patch refused": answered("good", to("patch", Refusal{http.StatusUnprocessableEntity, "Invalid", `Pod "x" is invalid: spec: Forbidden: pod updates may not change fields other than ...`})),
	"pod unknown":   answered("good", to("patch", Refusal{http.StatusNotFound, "NotFound", `pods "x" not found`})),
	"patch conflicts": answered("good", func(verb string, n int) *Refusal {
		if verb != "patch" || n > 2 {
			return nil
		}
		return &Refusal{http.StatusConflict, "Conflict", "Operation cannot be fulfilled on pods: the object has been modified"}
	}),
	"API server overloaded": answered("good", func(verb string, n int) *Refusal {
		switch {
		case verb == "patch" && n == 1:
			return &Refusal{http.StatusTooManyRequests, "TooManyRequests", "too many requests, please try again later"}
		case verb == "patch" && n == 2, verb == "watch" && n == 1:
			return &Refusal{http.StatusServiceUnavailable, "ServiceUnavailable", "apiserver is shutting down"}
		}
		return nil
	}),
	"API server away for seconds": {do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Cut: true})
		if err := s.submit(ctx, s.image("good"), "exit=0"); err != nil {
			return err
		}
		// The job is there and asks for its container; then it takes a while.
		err := harness.Poll(ctx, "an attempt to reach the API server", func() (bool, error) {
			return s.proxy.Seen(s.Pod, "get")+s.proxy.Seen(s.Pod, "patch") >= 5, nil
		})
		s.proxy.Set(s.Pod, Rule{})
		return err
	}},
	"API server away for longer": soon(3, action{do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Cut: true})
		return s.submit(ctx, s.image("good"), "exit=0")
	}}),
	"API server away under a running job": {do: func(ctx context.Context, s *stage) error {
		if _, err := s.start(ctx, s.image("good"), "ready sleep=10s exit=7"); err != nil {
			return err
		}
		s.proxy.Set(s.Pod, Rule{Cut: true})
		return nil
	}},
	"watch expired": {do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Answer: func(verb string, n int) *Refusal {
			if verb != "watch" || n > 1 {
				return nil
			}
			return &Refusal{http.StatusGone, "Expired", "too old resource version"}
		}})
		return s.submit(ctx, s.missing(), "exit=0")
	}},
	"watch closed": {do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Events: 1})
		return s.submit(ctx, s.missing(), "exit=0")
	}},
	"watch forbidden": soon(4, action{nowhere: true, do: func(ctx context.Context, s *stage) error {
		s.proxy.Set(s.Pod, Rule{Answer: to("watch", Refusal{http.StatusForbidden, "Forbidden", `pods "x" is forbidden: cannot watch`})})
		return s.submit(ctx, s.missing(), "exit=0")
	}}),

	"wrapper killed":         killed(nil),
	"container told to stop": {do: toldToStop, after: caught},
	"out of memory, job alone": {do: func(ctx context.Context, s *stage) error {
		return s.submit(ctx, s.image("good"), "memory=600 forever")
	}},
	"out of memory, whole container": killed(Ended("OOMKilled")),
	"evicted under a running job": {do: func(ctx context.Context, s *stage) error {
		image := s.image("good")
		if _, err := s.start(ctx, image, "ready forever"); err != nil {
			return err
		}
		s.proxy.Set(s.Pod, Rule{Pod: Over(image, "Evicted", "The node was low on resource: ephemeral-storage.")})
		return s.hit(ctx, unix.SIGKILL)
	}},

	"evicted while binding": said(func(image string) func(map[string]any) {
		return Over(image, "Evicted", "The node was low on resource: ephemeral-storage.")
	}),
	"node shuts down": said(func(image string) func(map[string]any) {
		return Over(image, "Terminated", "Pod was terminated in response to imminent node shutdown.")
	}),
	"preempted while binding": said(func(image string) func(map[string]any) {
		return Disrupted(image, "PreemptionByScheduler", "preempting to accommodate a higher priority pod")
	}),
	"pod deleted": asked(func(ctx context.Context, s *stage) error {
		s.fail()
		return s.kubectl(ctx, "", "delete", "pod", s.Pod, "--wait=false")
	}),
	// A startd that shuts down lets jobs retire before it vacates them.
	"pod deleted where jobs may retire": asked(func(ctx context.Context, s *stage) error {
		if err := s.configure(ctx, "MAXJOBRETIREMENTTIME = 3600"); err != nil {
			return err
		}
		if _, err := s.EP(ctx, nil, "condor_reconfig", "-startd"); err != nil {
			return err
		}
		// The command does not wait for the startd.
		err := harness.Poll(ctx, "the startd's retirement time", func() (bool, error) {
			text, err := s.EP(ctx, nil, "condor_config_val", "-startd", "MAXJOBRETIREMENTTIME")
			return strings.TrimSpace(text) == "3600", err
		})
		if err != nil {
			return err
		}
		s.fail()
		return s.kubectl(ctx, "", "delete", "pod", s.Pod, "--wait=false")
	}),
	"pod evicted by the API": asked(func(ctx context.Context, s *stage) error {
		s.fail()
		eviction := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + s.Pod + `","namespace":"` + harness.Namespace + `"}}`
		return s.kubectl(ctx, eviction, "create", "--raw", "/api/v1/namespaces/"+harness.Namespace+"/pods/"+s.Pod+"/eviction", "-f", "-")
	}),
	"active deadline": asked(func(ctx context.Context, s *stage) error {
		s.fail()
		return s.kubectl(ctx, "", "patch", "pod", s.Pod, "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	}),
	"pod deleted while binding": {last: true, do: func(ctx context.Context, s *stage) error {
		s.later(func() { s.good.Release(s.slug() + "-" + s.run) })
		if err := s.submit(ctx, s.image("hold"), "exit=0"); err != nil {
			return err
		}
		if err := harness.Poll(ctx, "the pull", func() (bool, error) { return s.good.Asked(s.slug() + "-" + s.run), nil }); err != nil {
			return err
		}
		s.fail()
		return s.kubectl(ctx, "", "delete", "pod", s.Pod, "--wait=false")
	}},
}

// missing is an image that does not exist.
func (s *stage) missing() string { return s.image("missing") }

func toldToStop(ctx context.Context, s *stage) error {
	if _, err := s.start(ctx, s.image("good"), "trap=caught:3 ready forever", "when_to_transfer_output = ON_EXIT_OR_EVICT"); err != nil {
		return err
	}
	return s.hit(ctx, unix.SIGTERM)
}

// fillDisk mounts a file system of one page, which the first file fills, where containerd keeps its downloads, until
// the job has been judged.
func fillDisk(ctx context.Context, s *stage) error {
	dir := filepath.Join(s.pool.State, "containerd", "io.containerd.content.v1.content", "ingest")
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		return fmt.Errorf("mounting on %s: %w", dir, err)
	}
	s.later(func() {
		// containerd may still hold the file that it could not write.
		for range 100 {
			if err := unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	})
	return s.submit(ctx, s.image("large"), "exit=0")
}
