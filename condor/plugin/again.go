package plugin

import (
	"context"
	"os"
	"time"
)

// hostsFile is where a plugin's system library finds the names of this machine and of
// the pod. In a pod the kubelet rewrites it whenever a container starts, and not
// atomically: for some milliseconds it is empty (pkg/kubelet/kubelet_pods.go:
// ensureHostsFile). A payload container starts while plugins run.
const hostsFile = "/etc/hosts"

// Bounds for repeating a plugin that may have failed because a name was missing.
const (
	nameTries = 3
	namePause = 50 * time.Millisecond
	// A slower failure is final: to repeat it may cost more than it helps. A crash says
	// nothing about its cause, so this bound does not apply.
	nameDoubt = time.Minute
)

// again runs a plugin, and once more if it may have failed because hostsFile was empty
// for a moment. The stock curl_plugin, which looks up its own machine's name for each
// file, then dies of SIGABRT (multifile_curl_plugin.cpp: InitializeStats frees what
// getaddrinfo(3) did not return).
func (r *Runner) again(ctx context.Context, p *Plugin, class Class, run func() (*Result, error)) (*Result, error) {
	for try := 1; ; try++ {
		before := r.names()
		res, err := run()
		if err != nil || try == nameTries || !res.doubtful(class) {
			return res, err
		}
		after := r.names()
		if before == after && after.size > 0 {
			return res, nil
		}
		r.Log.Warn("A plugin failed while the file of host names was rewritten; it runs once more",
			"plugin", p.Path, "names", r.hosts(), "exit", res.code, "signal", res.signal)
		timer := time.NewTimer(namePause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// doubtful reports whether the plugin ran and a missing name may explain its failure.
// An upload is not repeated after a failure that the plugin itself reported.
func (res *Result) doubtful(class Class) bool {
	return res.Status == Failed && res.Took > 0 && (res.signal != 0 || !class.upload() && res.Took < nameDoubt)
}

func (r *Runner) hosts() string {
	if r.Hosts == "" {
		return hostsFile
	}
	return r.Hosts
}

// version tells versions of a file apart.
type version struct {
	size     int64
	modified time.Time
}

// names returns the present version of the file of host names. A missing file counts as
// one that never changes.
func (r *Runner) names() version {
	st, err := os.Stat(r.hosts())
	if err != nil {
		return version{size: 1}
	}
	return version{st.Size(), st.ModTime()}
}
