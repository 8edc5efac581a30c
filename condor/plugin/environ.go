package plugin

import (
	"slices"
	"strings"

	"podstarter/condor/job"
)

// harmless are the variables of the starter's environment that a job's own plugin
// gets. The others belong to the site and may be secret.
var harmless = []string{
	"PATH", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "X509_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
}

// environment returns the environment of a run: the starter's own, the job's
// variables that begin with the plugin's name, and those about the job's place.
func (r *Runner) environment(p *Plugin, proxy string) []string {
	env := job.NewEnv()
	for _, entry := range r.Environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || p.FromJob && !forJobs(name) {
			continue
		}
		env.Set(name, value)
	}
	if p.Multi && r.Job != nil {
		own := job.NewEnv()
		if err := own.MergeAd(r.Job); err != nil {
			r.Log.Warn("The job's environment cannot be parsed; its plugins get none of it", "error", err)
			own = job.NewEnv()
		}
		prefix := p.Name + "_"
		for _, entry := range own.Strings() {
			name, value, ok := strings.Cut(entry, "=")
			if ok && len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				env.Set(name, value)
			}
		}
	}
	for _, entry := range r.Extra {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env.Set(name, value)
		}
	}
	if proxy != "" {
		env.Set("X509_USER_PROXY", proxy)
	}
	return env.Strings()
}

func forJobs(name string) bool {
	return slices.Contains(harmless, name) || strings.HasPrefix(name, "LC_") || strings.HasSuffix(strings.ToLower(name), "_proxy")
}
