package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

// A forbidden method cannot be reached by another spelling, or by a job that names one
// of the site's plugins for it.
func TestForbid(t *testing.T) {
	curl := &Plugin{Path: "/libexec/curl_plugin", Name: "CURL"}
	s := newSet()
	s.add(curl, []string{"http", "FILE"})
	s.Forbid("file")
	job := classads.NewAd()
	job.SetString("TransferPlugins", "file,mine=/libexec/curl_plugin;File=own")
	s.AddJob(job, Allow)
	if diff := cmp.Diff([]string{"http", "mine"}, s.Methods()); diff != "" {
		t.Error(diff)
	}
	for _, url := range []string{"file:///etc/passwd", "FILE:///etc/passwd", "x+file:///etc/passwd"} {
		if p := s.Find(url); p != nil {
			t.Errorf("%s is moved by %s", url, p.Path)
		}
	}
	if s.Find("http://h/x") != curl {
		t.Error("the other methods are gone as well")
	}
}
