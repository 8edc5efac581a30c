package plugin

import (
	"context"
	"os"
	"time"
)

// hostsFile is where a plugin's system library has the names of this machine and of
// the pod from. In a pod the kubelet writes it anew whenever a container starts, and
// not at once: for some milliseconds it is empty (pkg/kubelet/kubelet_pods.go:
// ensureHostsFile). A payload container starts while plugins run.
const hostsFile = "/etc/hosts"

// Bounds of runs of a plugin that may have failed for want of a name.
const (
	nameTries = 3
	namePause = 50 * time.Millisecond
	// A failure that took longer is believed: to repeat it may cost more than it helps.
	// A plugin that crashed has said nothing to be believed.
	nameDoubt = time.Minute
)

// again runs a plugin, and once more if it may have failed since the names of
// machines were not there for a moment. The stock curl_plugin, which looks its own
// machine's name up for each file, dies of SIGABRT then (multifile_curl_plugin.cpp:
// InitializeStats frees what getaddrinfo(3) has not given).
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
		r.Log.Warn("A plugin failed while the names of machines were written anew; it runs once more",
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

// doubtful reports whether the plugin ran and its failure may be one of names. What
// it stores is not stored twice because of a failure that it tells of.
func (res *Result) doubtful(class Class) bool {
	return res.Status == Failed && res.Took > 0 && (res.signal != 0 || !class.upload() && res.Took < nameDoubt)
}

func (r *Runner) hosts() string {
	if r.Hosts == "" {
		return hostsFile
	}
	return r.Hosts
}

// version tells states of a file apart.
type version struct {
	size     int64
	modified time.Time
}

// names is the present state of the file of names. A machine without one has one that
// never changes.
func (r *Runner) names() version {
	st, err := os.Stat(r.hosts())
	if err != nil {
		return version{size: 1}
	}
	return version{st.Size(), st.ModTime()}
}
