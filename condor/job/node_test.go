package job

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

const nodeAd = "ClusterId = 1\nProcId = 0\nCmd = \"x\"\nIwd = \"/i\"\nShouldTransferFiles = \"YES\"\nJobUniverse = 11\n"

func TestNodeOf(t *testing.T) {
	tests := map[string]struct {
		ad    string
		want  *Node
		wrong []string // in the error
	}{
		"node 1 of 2":         {ad: "Node = 1\nCurrentHosts = 2\nRemoteSpoolDir = \"/spool/1\"", want: &Node{Number: 1, Count: 2, Spool: "/spool/1"}},
		"node 0":              {ad: "Node = 0\nCurrentHosts = 2\nRemoteSpoolDir = \"/s\"", want: &Node{Count: 2, Spool: "/s", Awaited: true}},
		"all have to end":     {ad: "Node = 1\nCurrentHosts = 2\nRemoteSpoolDir = \"/s\"\nParallelShutdownPolicy = \"WAIT_FOR_ALL\"", want: &Node{Number: 1, Count: 2, Spool: "/s", Awaited: true}},
		"another policy":      {ad: "Node = 1\nCurrentHosts = 2\nRemoteSpoolDir = \"/s\"\nParallelShutdownPolicy = 7", want: &Node{Number: 1, Count: 2, Spool: "/s"}},
		"another universe":    {ad: "JobUniverse = 5"},
		"common files":        {ad: "ProcId = -100"},
		"nothing is said":     {wrong: []string{"Node", "CurrentHosts", "RemoteSpoolDir"}},
		"a number below zero": {ad: "Node = -1\nCurrentHosts = 2\nRemoteSpoolDir = \"/s\"", wrong: []string{"Node: -1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			i, err := Read(mustAd(t, nodeAd+tt.ad), "here")
			if (err != nil) != (tt.wrong != nil) {
				t.Fatal(err)
			}
			for _, words := range tt.wrong {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%v does not say %s", err, words)
				}
			}
			if diff := cmp.Diff(tt.want, i.Node); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNodePublish: the shadow needs the number in each update of a node, and in no other.
func TestNodePublish(t *testing.T) {
	ad := classads.NewAd()
	(*Node)(nil).Publish(ad)
	if ad.Len() != 0 {
		t.Errorf("published of a job without nodes: %s", ad)
	}
	(&Node{Number: 0}).Publish(ad)
	if ad.IntOr("Node", -1) != 0 {
		t.Errorf("published of node 0: %s", ad)
	}
}

func TestNodeEnvironment(t *testing.T) {
	knobs := map[string]string{"BIN": "/condor/bin", "STARTER_JOB_ENVIRONMENT": `"PATH=/of/site A=b"`}
	environ := []string{"PATH=/starters", "CONDOR_CONFIG=/etc/own", "OTHER=x"}
	always := map[string]string{"_CONDOR_PROCNO": "1", "_CONDOR_NPROCS": "2", "_CONDOR_REMOTE_SPOOL_DIR": "/spool", "A": "b"}
	tests := map[string]struct {
		ad      string
		environ []string
		inPod   bool
		want    map[string]string
	}{
		"the starter's PATH":        {environ: environ, want: map[string]string{"PATH": "/condor/bin:/starters", "CONDOR_CONFIG": "/etc/own"}},
		"the job's PATH":            {ad: `Environment = "PATH=/jobs"`, environ: environ, want: map[string]string{"PATH": "/condor/bin:/jobs", "CONDOR_CONFIG": "/etc/own"}},
		"no PATH":                   {want: map[string]string{"PATH": "/condor/bin", "CONDOR_CONFIG": ""}},
		"in a pod":                  {environ: environ, inPod: true, want: map[string]string{"PATH": "/of/site", "CONDOR_CONFIG": ""}},
		"in a pod, the job's own":   {ad: `Environment = "PATH=/jobs"`, environ: environ, inPod: true, want: map[string]string{"PATH": "/jobs"}},
		"the job cannot say others": {ad: `Environment = "_CONDOR_PROCNO=7 _CONDOR_NPROCS=8"`, environ: environ, want: map[string]string{"_CONDOR_PROCNO": "1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			env, err := Environment(mustAd(t, tt.ad), config.FromMap(knobs), Surroundings{
				Scratch: "/s", Iwd: "/s", Slot: "slot1", InPod: tt.inPod, Environ: tt.environ, Node: &Node{Number: 1, Count: 2, Spool: "/spool"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, wanted := range []map[string]string{always, tt.want} {
				for name, value := range wanted {
					if got, _ := env.Get(name); got != value {
						t.Errorf("%s is %q, want %q", name, got, value)
					}
				}
			}
		})
	}
}
