package shadow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
	"podstarter/testdata/streams"
)

const recordings = "../../testdata/streams"

// turned returns the packets from the other side's view.
func turned(packets []streams.Packet) []streams.Packet {
	all := make([]streams.Packet, len(packets))
	for i, p := range packets {
		p.In = !p.In
		all[i] = p
	}
	return all
}

// repeater makes the calls of a recording again. It reads them from the requests;
// the player checks that each is sent again byte for byte.
type repeater struct {
	t    testing.TB
	c    *Client
	sent *cedar.Stream
	said []string
}

func newRepeater(t testing.TB, packets []streams.Packet) *repeater {
	return &repeater{t: t, sent: cedartest.Adopted(t, streams.Say(t, turned(packets)))}
}

// note records a call, without the parts that differ between recordings.
func (r *repeater) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	line = regexp.MustCompile(`127\.0\.0\.1:\d+>`).ReplaceAllString(line, "127.0.0.1:PORT>")
	line = regexp.MustCompile(`/home/alice/jobs/[a-z]+[a-z0-9-]*/`).ReplaceAllString(line, "HERE/")
	r.said = append(r.said, line)
}

func (r *repeater) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v\nafter %s", err, strings.Join(r.said, "\n"))
	}
}

func (r *repeater) integer() int64 {
	n, err := r.sent.GetInt()
	r.must(err)
	return n
}

func (r *repeater) text() string {
	s, err := r.sent.GetString()
	r.must(err)
	return s
}

func (r *repeater) ad() *classads.Ad {
	ad, err := r.sent.GetAd()
	r.must(err)
	return ad
}

func (r *repeater) end() { r.must(r.sent.EndOfMessage()) }

// all makes the calls until none is left.
func (r *repeater) all(ctx context.Context) {
	for {
		number, err := r.sent.GetInt()
		if errors.Is(err, io.EOF) {
			return
		}
		r.must(err)
		r.one(ctx, number)
	}
}

// result formats the result of a call for the record.
func (r *repeater) result(value any, err error) any {
	var refusal *CallError
	if errors.As(err, &refusal) {
		return fmt.Sprintf("refused: %v", refusal.Errno)
	}
	r.must(err)
	return value
}

func (r *repeater) one(ctx context.Context, number int64) {
	switch number {
	case CallGetJobInfo:
		r.end()
		ad, err := r.c.GetJobInfo(ctx)
		r.must(err)
		r.c.SetVersion(version.Of(ad.StringOr("ShadowVersion", "")))
		r.note("get_job_info %s %s %s %q", ad.StringOr("Owner", ""), ad.StringOr("Cmd", "")[strings.LastIndexByte(ad.StringOr("Cmd", ""), '/')+1:],
			ad.StringOr("Out", ""), ad.StringOr("Arguments", ad.StringOr("Args", "")))
		if _, err := cedar.ParseClaimID(ad.StringOr("ClaimId", "")); err != nil {
			r.t.Errorf("the claim's id: %v", err)
		}
		for _, name := range []string{"TransferSocket", "MyAddress"} {
			if _, err := cedar.ParseSinful(ad.StringOr(name, "")); err != nil {
				r.t.Errorf("%s: %v", name, err)
			}
		}
	case CallGetUserInfo:
		r.end()
		ad, err := r.c.GetUserInfo(ctx)
		r.note("get_user_info %v", r.result(ad, err))
	case CallRegisterStarterInfo:
		ad := r.ad()
		r.end()
		r.note("register_starter_info %v", r.result(ad.StringOr("Name", ""), r.c.RegisterStarterInfo(ctx, ad)))
	case CallRegisterJobInfo:
		ad := r.ad()
		r.end()
		r.note("register_job_info %v", r.result(ad.StringOr("JobState", "Starting"), r.c.RegisterJobInfo(ctx, ad)))
	case CallBeginExecution:
		r.end()
		r.note("begin_execution %v", r.result("done", r.c.BeginExecution(ctx)))
	case CallJobTermination:
		ad := r.ad()
		r.end()
		r.note("job_termination %v", r.result(ad.IntOr("ExitCode", -1), r.c.JobTermination(ctx, ad)))
	case CallJobExit:
		status, reason, ad := r.integer(), r.integer(), r.ad()
		r.end()
		r.note("job_exit %#x %v", status, r.result(reason, r.c.JobExit(ctx, int(status), Reason(reason), ad)))
	case CallGetSecSessionInfo:
		_, _ = r.text(), r.text()
		r.end()
		info, err := r.c.GetSecSessionInfo(ctx)
		r.must(err)
		claim, err := cedar.ParseSinful(info.Reconnect.ID[:strings.IndexByte(info.Reconnect.ID, '>')+1])
		r.must(err)
		if info.FileTransfer.ID != "filetrans."+info.Reconnect.ID {
			r.t.Errorf("the sessions are %v", info)
		}
		for _, parts := range []SessionParts{info.Reconnect, info.FileTransfer} {
			if _, err := parts.Import(cedar.Daemon); err != nil {
				r.t.Errorf("%v: %v", parts, err)
			}
		}
		r.note("get_sec_session_info %s", claim.Alias())
	case CallRequestGuidance:
		ad := r.ad()
		r.end()
		g, err := r.c.RequestGuidance(ctx, ad)
		r.note("request_guidance %s: %v", ad.StringOr("RequestType", ""), r.result(g.Command(), err))
	case CallEventNotification:
		ad := r.ad()
		r.end()
		n, err := r.c.EventNotification(ctx, ad)
		r.note("event_notification %s: %v", ad.StringOr("EventType", ""), r.result(n, err))
	case CallDprintfStats:
		line := r.text()
		r.end()
		r.note("dprintf_stats %v", r.result(line != "", r.c.DprintfStats(ctx, line)))
	case CallULog:
		ad := r.ad()
		r.end()
		r.must(r.c.ulog(ctx, ad, false))
		r.note("ulog %s %s %d", ad.StringOr("MyType", ""), ad.StringOr("Info", ad.StringOr("ErrorMsg", "")), ad.IntOr("HoldReasonCode", 0))
	case CallGetJobAttr:
		name := r.text()
		r.end()
		expr, err := r.c.GetJobAttr(ctx, name)
		r.note("get_job_attr %s: %v", name, r.result(expr, err))
	case CallSetJobAttr:
		expr, name := r.text(), r.text()
		r.end()
		r.note("set_job_attr %s: %v", name, r.result(expr, r.c.SetJobAttr(ctx, name, expr)))
	default:
		r.file(ctx, number)
	}
}

// formats are the fields of the calls on files: numbers, text and a body, whose
// length is the number before last.
var formats = map[FileCall]string{
	FileAccess: "tn", FileClose: "n", FileFstat: "n", FileFsync: "n", FileGetdir: "t", FileGetfile: "t", FileLookup: "t", FileLseek: "nnn",
	FileMkdir: "tn", FileOpen: "nnt", FilePread: "nnn", FileRead: "nn", FileReadlink: "tn", FileRename: "tt", FileRmall: "t", FileRmdir: "t",
	FileSread: "nnnnn", FileStat: "t", FileStatfs: "t", FileSymlink: "tt", FileUnlink: "t", FileWhoami: "n", FileWhoareyou: "tn", FileWrite: "nnb",
}

func (r *repeater) file(ctx context.Context, number int64) {
	request := FileRequest{}
	for i, about := range fileCalls {
		if i > 0 && about.number == number {
			request.Call = FileCall(i)
		}
	}
	format, known := formats[request.Call]
	if !known {
		r.t.Fatalf("call %d is not known, after %s", number, strings.Join(r.said, "\n"))
	}
	var shown []string
	last := int64(0)
	for _, kind := range format {
		switch kind {
		case 'n':
			last = r.integer()
			request.Fields = append(request.Fields, Int(last))
			shown = append(shown, fmt.Sprint(last))
		case 't':
			text := r.text()
			request.Fields = append(request.Fields, Text(text))
			shown = append(shown, fmt.Sprintf("%q", text))
		case 'b':
			body, err := r.sent.GetBytes(int(last))
			r.must(err)
			request.Body, request.Size = bytes.NewReader(body), last
		}
	}
	r.end()
	var into bytes.Buffer
	request.Into = &into
	answer, err := r.c.File(ctx, request)
	got := fmt.Sprint(answer.Result)
	switch {
	case fileCalls[request.Call].answer == padded:
		got += fmt.Sprintf(" and %d numbers", len(strings.Fields(answer.Text)))
	case answer.Text != "":
		got += fmt.Sprintf(" %q", answer.Text)
	}
	if into.Len() > 0 {
		got += fmt.Sprintf(" %q", into.String())
	}
	r.note("%s %s: %v", request.Call, strings.Join(shown, " "), r.result(got, err))
}

// TestReplay makes the calls of every recording again: the requests are the same,
// and the answers are understood.
func TestReplay(t *testing.T) {
	for _, c := range streams.Cases(t, recordings) {
		t.Run(c[0]+"/"+c[1], func(t *testing.T) {
			recording := streams.Find(t, recordings, c[0], c[1], streams.Calls, 1)[0]
			packets := recording.Sealed()
			r := newRepeater(t, packets)
			r.c = New(cedartest.Adopted(t, streams.Play(t, recording)), quiet)
			defer r.c.Close()
			r.all(t.Context())
			if want, given := transcripts[c]; given {
				if diff := cmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), r.said); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if len(r.said) < 5 {
				t.Errorf("the calls were only %q", r.said)
			}
			t.Logf("\n%s", strings.Join(r.said, "\n"))
		})
	}
	for c := range transcripts {
		streams.Of(t, recordings, c[0], c[1])
	}
}
