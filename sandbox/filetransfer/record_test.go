package filetransfer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/sandbox/jobfiles"
	"podstarter/sandbox/sandboxtest"
)

// recorded collects records, a line each: what can be compared, and PLUGIN after those
// of lists.
type recorded struct {
	t     *testing.T
	began time.Time
	lines []string
}

func (r *recorded) add(ad *classads.Ad) {
	if !ad.Has("TransferType") {
		r.lines = append(r.lines, ad.StringOr("TransferUrl", "")+" PLUGIN")
		return
	}
	begin, err := ad.GetInt("TransferStartTime")
	must(r.t, err)
	finish, err := ad.GetInt("TransferEndTime")
	must(r.t, err)
	took, err := ad.GetReal("ConnectionTimeSeconds")
	if err != nil || begin < r.began.Unix() || took != float64(finish-begin) || finish > time.Now().Unix() {
		r.t.Errorf("times of %s", ad)
	}
	if e, _ := ad.Lookup("ConnectionTimeSeconds"); !strings.HasSuffix(e.String(), ".0") {
		r.t.Errorf("a duration is no real number of whole seconds: %s", e)
	}
	line := fmt.Sprint(ad.StringOr("TransferFileName", "?"), " ", ad.StringOr("TransferProtocol", "?"), " ", ad.IntOr("TransferFileBytes", -1), " ", ad.BoolOr("TransferSuccess", false))
	if total := ad.IntOr("TransferTotalBytes", -1); total != ad.IntOr("TransferFileBytes", -1) {
		line += fmt.Sprint(" of ", total)
	}
	if ad.StringOr("TransferType", "") != "download" || ad.Len() != 9 && !ad.Has("TransferUrl") {
		line += " and " + ad.String()
	}
	r.lines = append(r.lines, line)
}

// TestRecords: which items are recorded, in which order and under which name.
func TestRecords(t *testing.T) {
	for name, tt := range map[string]struct {
		items []sent
		want  []string
	}{
		"all arrives": {[]sent{
			{command: 1, name: "plain", mode: 0o644, data: "12345"}, {command: 2, name: "secret", mode: 0o600, data: "s"},
			{command: 6, name: "d", mode: 0o755}, {command: 1, name: "d/below", mode: 0o644, data: "x"},
			{command: 1, name: "old", mode: 0o644, data: "xy"}, {command: 1, name: historicExec, mode: 0o644, data: "exec"},
			{command: 999, ad: ad(t, `[SubCommand=8; Tag="t"; ReuseList={[FileName="a"]}]`)},
			fetchItem("z://h/1", "1"), fetchItem("one://h/2", "2"), fetchItem("a://h/3", "3"),
		}, []string{"plain cedar 5 true", "secret cedar 1 true", "d cedar 0 true", "d/below cedar 1 true", "old cedar 2 true", "run.sh cedar 4 true",
			"2 one 0 true of 100", "a://h/3 PLUGIN", "z://h/1 PLUGIN"}},
		"unwritten": {[]sent{
			{command: 1, name: "file", mode: 0o644, data: "x"}, {command: 1, name: "file/below", mode: 0o644, data: "12345"},
			{command: 1, name: "behind", mode: 0o644, data: "xy"}, fetchItem("z://h/1", "1"),
		}, []string{"file cedar 1 true", "file/below cedar 5 false", "behind cedar 2 false", "1 cedar 0 false"}},
		"illegal":          {[]sent{{command: 1, name: "../up", mode: 0o644, data: "123"}, fetchItem("z://h/1", "1")}, []string{"/dev/null cedar 3 false"}},
		"a remap's circle": {[]sent{{command: 1, name: "round", mode: 0o644, data: "123"}}, []string{"round cedar 3 false"}},
		"no plugin": {[]sent{fetchItem("a://h/1", "1"), fetchItem("none://h/2", "2"), fetchItem("z://h/3", "3")},
			[]string{"2 cedar 0 false", "3 cedar 0 false"}},
		"one fails": {[]sent{fetchItem("onebad://h/1", "1"), fetchItem("one://h/2", "2")},
			[]string{"1 onebad 0 true of 100", "2 cedar 0 false"}}, // the plugin itself says that it succeeded
		"a list fails": {[]sent{fetchItem("bad://h/1", "1"), fetchItem("z://h/2", "2")}, []string{"bad://h/1 PLUGIN", "z://h/2 PLUGIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newShadow(t), sandboxtest.New(t)
			f.items = tt.items
			tr := f.transfer(s, plainJob+"\nTransferInputRemaps = \"old=new; round=b; b=round\"\n")
			got := &recorded{t: t, began: time.Now()}
			tr.config.Plugins, tr.config.Record = &urlPlugins{s: s}, got.add
			_, _ = tr.Download(t.Context())
			f.mustPlay()
			if diff := cmp.Diff(tt.want, got.lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRecordsOfOutput: only reports about lists are recorded, also of a checkpoint, and
// nothing of what goes over CEDAR, such as its manifest.
func TestRecordsOfOutput(t *testing.T) {
	for _, kind := range []jobfiles.Kind{jobfiles.Output, jobfiles.Checkpoint} {
		f, s := newShadow(t), sandboxtest.New(t)
		sandboxtest.Put(t, s, map[string]string{"a": "a", "b": "b", "_condor_stdout": "o"})
		tr := f.transfer(s, plainJob+"TransferOutput = \"a,b\"\nTransferCheckpoint = \"a\"\nCheckpointDestination = \"z://h/c\"\n"+
			"GlobalJobId = \"ap#1.0#1\"\nTransferOutputRemaps = \"a=z://h/a; b=one://h/b\"\n")
		got := &recorded{t: t, began: time.Now()}
		tr.config.Plugins, tr.config.Record = &urlPlugins{s: s}, got.add
		_, err := tr.Upload(t.Context(), Upload{Kind: kind})
		must(t, err)
		f.mustPlay()
		want := []string{"z://h/a PLUGIN"}
		if kind == jobfiles.Checkpoint {
			want = []string{"z://h/c/ap_1.0_1/0000/a PLUGIN", "z://h/c/ap_1.0_1/0000/_condor_stdout PLUGIN"}
		}
		if diff := cmp.Diff(want, got.lines); diff != "" {
			t.Errorf("kind %v: %s", kind, diff)
		}
	}
}
