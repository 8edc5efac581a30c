package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/payload"
	"podstarter/starter/activation"
	"podstarter/starter/outlet"
	"podstarter/starter/settings"
)

func TestCheckOptions(t *testing.T) {
	type want struct{ Check, JSON bool }
	for args, w := range map[string]want{
		"-check": {true, false}, "-check -json": {true, true}, "-classad": {}, "": {}, "-json": {}, "-check host": {}, "-f -check": {},
	} {
		c, j := checkOptions(strings.Fields(args))
		if diff := cmp.Diff(w, want{c, j}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

func TestPrintFindings(t *testing.T) {
	found := []payload.Finding{
		{Grade: payload.OK, What: "token", Detail: "is bound"},
		{Grade: payload.Warn, What: "pod", Detail: "has\nthe node's \x1b[31mnetwork", Fix: "spec.hostNetwork: false"},
		{Grade: payload.Bad, What: "starter", Detail: "is another", Fix: "STARTER = /x"},
	}
	var out strings.Builder
	if err := printFindings(&out, "title", found); err != nil {
		t.Fatal(err)
	}
	const want = `title

ok    token    is bound
WARN  pod      has the node's [31mnetwork
               change: spec.hostNetwork: false
BAD   starter  is another
               change: STARTER = /x

1 ok, 1 to be warned of, 1 bad
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	if err := encodeFindings(&out, "title", found); err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Title    string
		Findings []struct{ Grade, What, Detail, Fix string }
	}
	if err := json.Unmarshal([]byte(out.String()), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded.Findings) != 3 || decoded.Findings[1].Grade != "warn" || decoded.Findings[2].Fix != "STARTER = /x" {
		t.Errorf("%+v", decoded)
	}
}

func TestAuditKnobs(t *testing.T) {
	for _, tt := range []struct {
		name  string
		knobs map[string]string
		want  []string // grade, what, fix of what is not OK
	}{
		{"another starter", map[string]string{"STARTER": "/bin/true", "NUM_SLOTS": "2", "POD_STARTER_CONTAINERS": "payload, payload-2"},
			[]string{"bad starter"}},
		{"more slots than containers", map[string]string{"NUM_SLOTS": "3"}, []string{"bad starter", "warn slots"}},
		{"more containers than slots", map[string]string{"NUM_SLOTS": "1", "POD_STARTER_CONTAINERS": "payload payload-2"}, []string{"bad starter", "warn slots"}},
		{"slots for all but the spares", map[string]string{"NUM_SLOTS": "2", "POD_STARTER_CONTAINERS": "payload payload-2 payload-3", "POD_STARTER_SPARES": "1"},
			[]string{"bad starter"}},
		{"slots for the spares, too", map[string]string{"NUM_SLOTS": "3", "POD_STARTER_CONTAINERS": "payload payload-2 payload-3", "POD_STARTER_SPARES": "1"},
			[]string{"bad starter", "warn slots"}},
		{"fewer slots than containers for them", map[string]string{"NUM_SLOTS": "1", "POD_STARTER_CONTAINERS": "payload payload-2 payload-3", "POD_STARTER_SPARES": "1"},
			[]string{"bad starter", "warn slots"}},
		{"a partitionable slot with too few containers", map[string]string{"NUM_SLOTS_TYPE_1": "1", "SLOT_TYPE_1_PARTITIONABLE": "True", "MACHINE_RESOURCE_Payloads": "1", "POD_STARTER_CONTAINERS": "payload payload-2"},
			[]string{"bad starter", "warn slots"}},
		{"HTCondor's user runs jobs in a spare", map[string]string{"NUM_SLOTS": "1", "POD_STARTER_CONTAINERS": "payload payload-2", "POD_STARTER_SPARES": "1", "CONDOR_IDS": "10002.10002"},
			[]string{"bad starter", "bad user of HTCondor"}},
		{"HTCondor's user runs jobs", map[string]string{"NUM_SLOTS": "1", "CONDOR_IDS": "10001.10001"}, []string{"bad starter", "bad user of HTCondor"}},
		{"a broker without a shared port", map[string]string{"NUM_SLOTS": "1", "CCB_ADDRESS": "cm.example.org:9618", "USE_SHARED_PORT": "false"},
			[]string{"bad starter", "bad broker"}},
		{"a broker", map[string]string{"NUM_SLOTS": "1", "CCB_ADDRESS": "cm.example.org:9618"}, []string{"bad starter"}},
		{"calls through a broker", map[string]string{"NUM_SLOTS": "1", "CCB_ADDRESS": "cm.example.org:9618", "OUTBOUND_CCB_ADDRESS": "cm.example.org:9618"},
			[]string{"bad starter", "bad broker"}},
		{"nobody knows HTCondor's user", map[string]string{"NUM_SLOTS": "1", "CONDOR_IDS": "condor"}, []string{"bad starter", "bad user of HTCondor"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, ids := tt.knobs["CONDOR_IDS"]; ids && os.Getuid() != 0 {
				// Only root looks at CONDOR_IDS: without root, HTCondor's user is whoever runs it.
				tt.want = []string{"bad starter"}
			}
			tt.knobs["POD_STARTER_BACKEND"], tt.knobs["POD_STARTER_EVENT_LOG"] = "pod", "none"
			if tt.knobs["CONDOR_IDS"] == "" {
				tt.knobs["CONDOR_IDS"] = "101.101"
			}
			cfg := config.FromMap(tt.knobs)
			set, err := settings.Read(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range auditKnobs(cfg, set) {
				if f.Grade != payload.OK {
					got = append(got, f.Grade.String()+" "+f.What)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAuditLog: -check says whether the lines for kubectl logs have a way out.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	set := settings.Settings{Backend: settings.BackendPod, PrivateDir: dir, EventLog: settings.EventLogText}
	says := func() (got payload.Finding) {
		auditLog(set, func(grade payload.Grade, what, fix, format string, args ...any) {
			got = payload.Finding{Grade: grade, What: what, Fix: fix, Detail: fmt.Sprintf(format, args...)}
		})
		return got
	}
	if f := says(); f.Grade != payload.Warn || !strings.Contains(f.Detail, "no such file") {
		t.Errorf("without a FIFO: %+v", f)
	}
	path := filepath.Join(dir, outlet.File)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := says(); f.Grade != payload.Warn || !strings.Contains(f.Detail, "no such device") {
		t.Errorf("nobody reads the FIFO: %+v", f)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if f := says(); f.Grade != payload.OK {
		t.Errorf("with a reader: %+v", f)
	}
}

// A configuration that cannot be used is a finding for each mistake.
func TestAuditOfMistakes(t *testing.T) {
	cfg := config.FromMap(map[string]string{"POD_STARTER_BACKEND": "cloud", "POD_STARTER_PAYLOAD_UID": "0"})
	var out strings.Builder
	if code := printAudit(context.Background(), &out, cfg, false); code != activation.ExitGeneral {
		t.Errorf("exit code %d", code)
	}
	for _, knob := range []string{"change: POD_STARTER_BACKEND", "change: POD_STARTER_PAYLOAD_UID", "2 bad"} {
		if !strings.Contains(out.String(), knob) {
			t.Errorf("no %q in\n%s", knob, &out)
		}
	}
}
