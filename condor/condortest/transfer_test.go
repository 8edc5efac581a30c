package condortest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/internal/cedar"
)

// transfer begins a transfer at a shadow.
func transfer(t *testing.T, s *Shadow, command int, key string) *cedar.Stream {
	t.Helper()
	s.Connect(t) // so that there is a session
	session, err := s.TransferSession()
	must(t, err)
	by := &cedar.Client{Version: s.version, Timeout: patience}
	st, err := by.Command(t.Context(), s.Address(), command, session)
	must(t, err)
	t.Cleanup(func() { st.Close() })
	st.PutString(key)
	must(t, st.EndMessage())
	return st
}

// takeInput takes input as a starter does, and shows it.
func takeInput(st *cedar.Stream) (got []string, err error) {
	if _, err := st.GetInt(); err != nil {
		return nil, err
	}
	if _, err := st.GetAd(); err != nil { // there is nothing behind the number
		return append(got, "refused"), nil
	}
	if err := st.EndOfMessage(); err != nil {
		return got, err
	}
	say := func(n int64) { _ = result(st, n) }
	for first := true; ; first = false {
		command, err := st.GetInt()
		if err := end(st, err); err != nil {
			return got, err
		}
		if command == 0 {
			break
		}
		name, err := st.GetString()
		if err := end(st, err); err != nil {
			return got, err
		}
		if first {
			_, err := st.GetInt()
			if err := end(st, err); err != nil {
				return got, err
			}
			st.PutAd(mustParse("Result = 2"))
			_ = st.EndMessage()
			say(300)
			for {
				ad, err := st.GetAd()
				if err := end(st, err); err != nil {
					return got, err
				}
				got = append(got, ad.FormatNew())
				if n := ad.IntOr("Result", 0); n < 0 {
					return got, nil
				} else if n > 0 {
					break
				}
			}
		}
		mode, err := st.GetInt()
		if err := end(st, err); err != nil {
			return got, err
		}
		var contents strings.Builder
		if command == ItemFile {
			_, err = st.GetFile(&contents, -1)
			if err := end(st, err); err != nil {
				return append(got, name+" "+contents.String()), err
			}
		}
		got = append(got, fmt.Sprintf("%s %o %s", name, mode, contents.String()))
	}
	ad, err := st.GetAd()
	if err := end(st, err); err != nil {
		return got, err
	}
	got = append(got, ad.FormatNew())
	st.PutAd(mustParse("Result = 0"))
	return got, st.EndMessage()
}

// TestPlanOfInput is what a starter gets that wants input.
func TestPlanOfInput(t *testing.T) {
	const (
		ahead = "[ Result = 2 ]"
		done  = `[ Result = 0; TransferStats = [ Protocols = "cedar"; CedarSizeBytes = 8; CedarFilesCount = 2 ] ]`
	)
	for _, tt := range []struct {
		name    string
		call    string
		nth     int
		action  Action
		want    []string
		fails   bool
		reports bool // the starter's report arrives
	}{
		{"nothing", Input, 2, HangUp(), []string{ahead, "a 644 one", "b 755 #!two", done}, false, true},
		{"hang up", Input, 1, HangUp(), nil, true, false},
		{"refuse the key", Input, 1, Refuse(syscall.EACCES), []string{"refused"}, false, false},
		{"refuse to go ahead", GoAhead, 1, Answer(Refusal(5, 6, "not now", true)), []string{`[ Result = -1; HoldReasonCode = 5; HoldReasonSubCode = 6; HoldReason = "not now"; TryAgain = true ]`}, false, false},
		{"wait", GoAhead, 1, AnswerText(NotYet), []string{"[ Result = 0 ]", ahead, "a 644 one", "b 755 #!two", done}, false, true},
		{"hang up before an item", InputItem, 2, HangUp(), []string{ahead, "a 644 one"}, true, false},
		{"hang up within a file", InputItem, 1, HangUpAfter(2), []string{ahead, "a "}, true, false},
		{"fail", InputAck, 1, Answer(Failure(12, 28, "no room", false)), []string{ahead, "a 644 one", "b 755 #!two", `[ Result = -1; HoldReasonCode = 12; HoldReasonSubCode = 28; HoldReason = "no room" ]`}, false, true},
		{"drop the report", InputAck, 1, HangUp(), []string{ahead, "a 644 one", "b 755 #!two"}, true, false},
		{"garbage", InputAck, 1, Garbage([]byte("\x01\x00\x00\x00\x20 garbage of enough bytes for a packet")), []string{ahead, "a 644 one", "b 755 #!two"}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewShadow(t, ShadowOptions{Job: "TransferInput = \"a,b\"\nTransferExecutable = false", Files: map[string]string{"a": "one", "b": "#!two"}})
			s.On(tt.call, tt.nth, tt.action)
			got, err := takeInput(transfer(t, s, cedar.FileTransUpload, s.Key()))
			if (err != nil) != tt.fails {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.reports {
				s.Wait(t, Call(InputAck).With("Result", "0"))
			}
		})
	}
	t.Run("another key", func(t *testing.T) {
		s := NewShadow(t, ShadowOptions{})
		got, err := takeInput(transfer(t, s, cedar.FileTransUpload, "1#wrong"))
		if diff := cmp.Diff([]string{"refused"}, got); diff != "" || err != nil {
			t.Errorf("%s, %v", diff, err)
		}
	})
}

// TestPlanOfOutput is what becomes of a starter's output.
func TestPlanOfOutput(t *testing.T) {
	for _, tt := range []struct {
		name   string
		call   string
		action Action
		fails  bool
		want   string
	}{
		{"nothing", Input, HangUp(), false, "[ Result = 0; TransferStats = [ Protocols = \"cedar\"; CedarSizeBytes = 5; CedarFilesCount = 1 ] ]"},
		{"drop the last report", OutputAck, HangUp(), true, ""},
		{"fail", OutputAck, Answer(Failure(12, 2, "no such directory", true)), false, `[ Result = 1; HoldReasonCode = 12; HoldReasonSubCode = 2; HoldReason = "no such directory" ]`},
		{"hang up within the file", OutputItem, HangUpAfter(1), true, ""},
		{"hang up after the file", OutputItem, HangUp(), true, ""},
		{"hang up at once", OutputInfo, HangUp(), true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewShadow(t, ShadowOptions{})
			s.On(tt.call, 1, tt.action)
			got, err := giveOutput(transfer(t, s, cedar.FileTransDownload, s.Key()))
			if (err != nil) != tt.fails || got != tt.want {
				t.Errorf("%s, %v", got, err)
			}
			if !tt.fails {
				want := []Heard{{Call: OutputItem, Ints: []int64{ItemFile, 0o600}, Texts: []string{"out"}, Body: "hello"}}
				if diff := cmp.Diff(want, []Heard{s.Wait(t, Call(OutputItem))}); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(map[string]string{"out": "hello"}, s.Outputs()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// giveOutput gives one file as a starter does; the result is the shadow's report.
func giveOutput(st *cedar.Stream) (string, error) {
	st.PutInt(1)
	st.PutAd(mustParse("SandboxSize = 5"))
	_ = st.EndMessage()
	_ = result(st, ItemFile)
	st.PutString("out")
	_ = st.EndMessage()
	_ = result(st, 300)
	_, err := st.GetAd()
	if err := end(st, err); err != nil {
		return "", err
	}
	_, err = st.GetInt()
	if err := end(st, err); err != nil {
		return "", err
	}
	st.PutAd(mustParse("Result = 2"))
	_ = st.EndMessage()
	_ = result(st, 0o600)
	_ = st.PutFile(strings.NewReader("hello"), 5)
	_ = st.EndMessage()
	_ = result(st, 0)
	st.PutAd(mustParse("Result = 0"))
	if err := st.EndMessage(); err != nil {
		return "", err
	}
	ad, err := st.GetAd()
	if err := end(st, err); err != nil {
		return "", err
	}
	return ad.FormatNew(), nil
}
