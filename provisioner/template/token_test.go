package template

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

func TestToken(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good + "token: {secret: glidein-credentials, lifetime: 12h}\n", "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	want := &Token{Secret: "glidein-credentials", File: "token", Lifetime: 12 * time.Hour, Authorizations: []string{"ADVERTISE_STARTD", "ADVERTISE_MASTER"}}
	if diff := cmp.Diff(want, all[0].Token); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	all, err = Load(folder(t, map[string]string{"a.template.yaml": good + "token: {secret: x, file: pool.token, key: POOL, identity: condor@example.org, lifetime: 8h, authorizations: [READ]}\n", "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	want = &Token{Secret: "x", File: "pool.token", Key: "POOL", Identity: "condor@example.org", Lifetime: 8 * time.Hour, Authorizations: []string{"READ"}}
	if diff := cmp.Diff(want, all[0].Token); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTokenMistakes(t *testing.T) {
	for want, token := range map[string]string{
		`secret is ""`:        "{lifetime: 12h}",
		`file is "../x"`:      "{secret: x, file: ../x, lifetime: 12h}",
		`lifetime is "1m"`:    "{secret: x, lifetime: 1m}",
		`lifetime is ""`:      "{secret: x}",
		`lifetime is "9999h"`: "{secret: x, lifetime: 9999h}",
		"lifetime is 7h0m0s, and a pod takes jobs for 8h":  "{secret: x, lifetime: 7h}",
		"the collector signs tokens only for":              "{secret: x, lifetime: 12h, identity: a@b}",
		`identity is "condor"`:                             "{secret: x, lifetime: 12h, key: POOL, identity: condor}",
		`"-K" is no name`:                                  "{secret: x, lifetime: 12h, key: -K, identity: a@b}",
		`"a@b c" is no name`:                               "{secret: x, lifetime: 12h, key: K, identity: a@b c}",
		`authorizations has "ADMINISTRATOR"; an execution`: "{secret: x, lifetime: 12h, authorizations: [READ, ADMINISTRATOR]}",
	} {
		_, err := Load(folder(t, map[string]string{"a.template.yaml": good + "token: " + token + "\n", "job.yaml": ""}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one with %q", token, err, want)
		}
	}
}

// Since 25.12, access points ask for the version of the slot in the requirements of
// each job. An error there is an error of the whole, whatever follows.
func TestVersion(t *testing.T) {
	all, err := Load(folder(t, map[string]string{"a.template.yaml": good, "job.yaml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	job, err := classads.ParseOld(`Requirements = (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk))
RequestDisk = 1000`)
	if err != nil {
		t.Fatal(err)
	}
	slot := all[0].Slot(all[0].Shapes[0], nil)
	if v := job.Eval("Requirements", classads.Env{Target: slot}).String(); v != "true" {
		t.Errorf("the requirements of a job are %s", v)
	}
	job.SetInt("RequestDisk", 1<<40)
	if v := job.Eval("Requirements", classads.Env{Target: slot}).String(); v != "false" {
		t.Errorf("the requirements of a job that is too large are %s", v)
	}
}
