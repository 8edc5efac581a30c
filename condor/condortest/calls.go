package condortest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// signature is what a call looks like: its name, and its fields, of which n is a number,
// t a text, a an ad, and b as many bytes as the second number says.
type signature struct {
	name, fields string
	answer       func(s *Shadow, st *cedar.Stream, h Heard, r *reaction) error
}

// signatures are the calls by number (condor_includes/condor_sys.h). Those on files have
// no answer here; see remoteIO.
var signatures = map[int64]signature{
	-63: {"get_job_info", "", (*Shadow).answerJob},
	-65: {"job_exit", "nna", (*Shadow).answerZero},
	-74: {"get_file_info_new", "t", nil},
	-76: {"get_user_info", "", (*Shadow).answerUser},
	-77: {"register_starter_info", "a", (*Shadow).answerZero},
	-78: {"begin_execution", "", (*Shadow).answerZero},
	-81: {"register_job_info", "a", (*Shadow).answerZero},
	-82: {"job_termination", "a", (*Shadow).answerZero},
	-84: {"dprintf_stats", "t", (*Shadow).answerZero},
	-85: {"get_docker_creds", "a", (*Shadow).answerDocker},
	284: {"ulog", "a", (*Shadow).answerNothing},
	285: {"get_job_attr", "t", (*Shadow).answerAttribute},
	286: {"set_job_attr", "tt", (*Shadow).takeAttribute},
	287: {"constrain", "t", (*Shadow).answerZero},
	288: {"get_sec_session_info", "tt", (*Shadow).answerSessions},
	302: {"getcreds", "t", (*Shadow).answerTokens},
	303: {"get_delegated_proxy", "tn", (*Shadow).answerProxy},
	304: {"event_notification", "a", (*Shadow).answerEvent},
	305: {"request_guidance", "a", (*Shadow).answerGuidance},

	1: {"access", "tn", nil}, 7: {"chmod", "tn", nil}, 8: {"chown", "tnn", nil}, 10: {"close", "n", nil},
	19: {"fchmod", "nn", nil}, 20: {"fchown", "nnn", nil}, 24: {"fstat", "n", nil}, 25: {"fstatfs", "n", nil}, 26: {"fsync", "n", nil},
	27: {"ftruncate", "nn", nil}, 296: {"getdir", "t", nil}, 293: {"getfile", "t", nil}, 295: {"getlongdir", "t", nil}, 251: {"lchown", "tnn", nil},
	52: {"link", "tt", nil}, 54: {"lseek", "nnn", nil}, 55: {"lstat", "t", nil}, 58: {"mkdir", "tn", nil}, 66: {"open", "nnt", nil},
	289: {"pread", "nnn", nil}, 290: {"pwrite", "nnnb", nil}, 71: {"read", "nn", nil}, 72: {"readlink", "tn", nil}, 78: {"rename", "tt", nil},
	292: {"rmall", "t", nil}, 79: {"rmdir", "t", nil}, 299: {"sread", "nnnnn", nil}, 108: {"stat", "t", nil}, 109: {"statfs", "t", nil},
	291: {"swrite", "nnnnnb", nil}, 111: {"symlink", "tt", nil}, 113: {"truncate", "tn", nil}, 115: {"unlink", "t", nil}, 242: {"utime", "tnn", nil},
	297: {"whoami", "n", nil}, 298: {"whoareyou", "tn", nil}, 120: {"write", "nnb", nil},
}

// serveCalls answers calls on a connection until it ends.
func (s *Shadow) serveCalls(st *cedar.Stream, w *wire) {
	// The peer decides when something is said, however long that takes.
	st.SetTimeout(0)
	s.mu.Lock()
	s.calls = append(s.calls, w)
	s.mu.Unlock()
	s.served.Go(func() {
		defer s.add(Heard{Call: Closed})
		defer st.Close()
		for {
			if err := s.serveCall(st, w); err != nil {
				return
			}
		}
	})
}

// serveCall hears one call and answers it. An error ends the connection.
func (s *Shadow) serveCall(st *cedar.Stream, w *wire) error {
	number, err := st.GetInt()
	if err != nil {
		return err
	}
	about, known := signatures[number]
	if !known {
		s.add(Heard{Call: fmt.Sprintf("unknown call %d", number)})
		return fmt.Errorf("call %d is not known", number)
	}
	r := s.at(about.name)
	if r.unread {
		s.add(Heard{Call: about.name})
		return errHungUp
	}
	h, err := about.take(st)
	if err != nil {
		s.add(Heard{Call: "broken " + about.name})
		return err
	}
	if about.name == "register_starter_info" {
		s.mu.Lock()
		s.starter = h.Ad.Text("StarterIpAddr")
		s.mu.Unlock()
	}
	s.add(h)
	s.begin(r, h)
	switch {
	case r.hangUp:
		return errHungUp
	case r.raw != nil:
		_, err := w.Write(r.raw)
		return err
	case r.half > 0:
		w.cutAfter(r.half)
	}
	if r.say != nil {
		return r.say(st)
	}
	if err := s.answer(about, st, h, r); err != nil {
		return err
	}
	if about.name == "job_exit" {
		return net.ErrClosed // as a shadow does
	}
	return nil
}

func (s *Shadow) answer(about signature, st *cedar.Stream, h Heard, r *reaction) error {
	answer := about.answer
	if r.errno != 0 && !slices.Contains(reasonless, about.name) {
		return refuse(st, r.errno)
	}
	if answer == nil {
		return s.remoteIO(st, h)
	}
	return answer(s, st, h, r)
}

// reasonless are the calls that do not say why they fail.
var reasonless = []string{"get_docker_creds", "ulog", "getcreds", "get_delegated_proxy", "event_notification", "request_guidance"}

// take takes the fields of a call.
func (about signature) take(st *cedar.Stream) (Heard, error) {
	h := Heard{Call: about.name}
	for _, kind := range about.fields {
		switch kind {
		case 'n':
			n, err := st.GetInt()
			if err != nil {
				return h, err
			}
			h.Ints = append(h.Ints, n)
		case 't':
			text, err := st.GetString()
			if err != nil {
				return h, err
			}
			h.Texts = append(h.Texts, text)
		case 'a':
			ad, err := st.GetAd()
			if err != nil {
				return h, err
			}
			h.Ad = adOf(ad)
		case 'b':
			body, err := st.GetBytes(int(h.Ints[1]))
			if err != nil {
				return h, err
			}
			h.Body = string(body)
		}
	}
	return h, st.EndOfMessage()
}

// refuse answers with an errno.
func refuse(st *cedar.Stream, errno syscall.Errno) error {
	st.PutInt(-1)
	st.PutErrno(errno)
	return st.EndMessage()
}

// result answers with a number.
func result(st *cedar.Stream, n int64) error {
	st.PutInt(n)
	return st.EndMessage()
}

func (s *Shadow) answerZero(st *cedar.Stream, _ Heard, _ *reaction) error { return result(st, 0) }

func (s *Shadow) answerNothing(_ *cedar.Stream, h Heard, _ *reaction) error {
	if h.Ad.Text("MyType") == "RemoteErrorEvent" && h.Ad["CriticalError"] != "0" {
		return net.ErrClosed // the shadow hangs up
	}
	return nil
}

func answerAd(st *cedar.Stream, code int64, ad *classads.Ad) error {
	st.PutInt(code)
	st.PutAd(ad)
	return st.EndMessage()
}

func (s *Shadow) answerJob(st *cedar.Stream, _ Heard, r *reaction) error {
	if r.ad != nil {
		return answerAd(st, 0, r.ad)
	}
	return answerAd(st, 0, s.Job())
}

func (s *Shadow) answerUser(st *cedar.Stream, _ Heard, r *reaction) error {
	ad := r.ad
	if ad == nil {
		ad = mustParse("Uid = 1000\nGid = 1000")
	}
	return answerAd(st, 0, ad)
}

func (s *Shadow) answerDocker(st *cedar.Stream, _ Heard, r *reaction) error {
	ad := r.ad
	if ad == nil {
		ad = mustParse(`HTCondorError = "no credentials"`)
	}
	st.PutAd(ad)
	return st.EndMessage()
}

func (s *Shadow) answerAttribute(st *cedar.Stream, h Heard, _ *reaction) error {
	text := "UNDEFINED"
	if e, found := s.Job().Lookup(h.Texts[0]); found {
		text = e.OldString()
	}
	st.PutInt(0)
	st.PutString(text)
	return st.EndMessage()
}

func (s *Shadow) takeAttribute(st *cedar.Stream, h Heard, _ *reaction) error {
	if slices.Contains([]string{"owner", "user", "clusterid", "procid"}, strings.ToLower(h.Texts[1])) {
		return refuse(st, syscall.EACCES) // the schedd does not let it
	}
	e, err := classads.ParseOldExpr(h.Texts[0])
	if err != nil {
		return refuse(st, syscall.EINVAL)
	}
	s.mu.Lock()
	s.job.Insert(h.Texts[1], e)
	s.mu.Unlock()
	return result(st, 0)
}

func (s *Shadow) answerSessions(st *cedar.Stream, _ Heard, _ *reaction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.PutInt(1)
	for _, session := range []cedar.ClaimID{s.claim, s.transfer} {
		for _, text := range []string{session.SessionID, session.Info, session.Key} {
			st.PutSecret(text)
		}
	}
	return st.EndMessage()
}

func (s *Shadow) answerTokens(st *cedar.Stream, _ Heard, r *reaction) error {
	if s.options.Tokens == nil || r.errno != 0 {
		return result(st, -1)
	}
	for _, service := range slices.Sorted(maps.Keys(s.options.Tokens)) {
		ad := classads.NewAd()
		ad.SetString("Service", service)
		ad.SetString("Data", base64.StdEncoding.EncodeToString([]byte(s.options.Tokens[service])))
		st.PutInt(1)
		st.PutAd(ad)
	}
	return result(st, 0)
}

func (s *Shadow) answerProxy(st *cedar.Stream, _ Heard, r *reaction) error {
	if r.errno != 0 {
		return delegate(st, 0)
	}
	return delegate(st, 2)
}

// answerEvent answers -3, unknown, of what newer shadows have recorded nevertheless.
func (s *Shadow) answerEvent(st *cedar.Stream, h Heard, r *reaction) error {
	const unknown = -3
	if r.errno != 0 || h.Ad.Text("EventType") == "ActivationExecutionExit" && version.Of(s.version).AtLeast(24, 5, 0) {
		return result(st, unknown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return result(st, 0)
}

// answerGuidance lets the job start. When its input could not be had, it asks for the
// starter's log first, and gives up then, as a shadow of 25.14.
func (s *Shadow) answerGuidance(st *cedar.Stream, h Heard, r *reaction) error {
	const invalid = -3
	if r.errno != 0 {
		return answerAd(st, invalid, classads.NewAd())
	}
	ad := r.ad
	if ad == nil {
		ad = s.guidance(h.Ad.Text("RequestType"))
	}
	return answerAd(st, 0, ad)
}

func (s *Shadow) guidance(request string) *classads.Ad {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !strings.EqualFold(request, "JobEnvironment"):
		return mustParse(`Command = "CarryOn"`)
	case !s.failed:
		return mustParse(`Command = "StartJob"`)
	case !s.asked:
		s.asked = true
		return mustParse("Command = \"RunDiagnostic\"\nDiagnostic = \"send_ep_logs\"")
	}
	return mustParse(`Command = "Abort"`)
}
