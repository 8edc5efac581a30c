package ccb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
)

func TestParseContacts(t *testing.T) {
	for text, want := range map[string][]string{
		"1.2.3.4:9618#5": {"broker 1.2.3.4:9618, id 5"},
		"1.2.3.4:9618?addrs=1.2.3.4-9618&alias=cm&noUDP#5":    {"broker 1.2.3.4:9618, id 5"},
		"1.2.3.4:9618?sock=collector#12 5.6.7.8:9618?noUDP#3": {"broker 1.2.3.4:9618, id 12", "broker 5.6.7.8:9618, id 3"},
		"[fd00::1]:9618#5#6":                  {"broker [fd00::1]:9618, id 5#6"},
		strings.Repeat("1.2.3.4:9618#5 ", 40): slicesOf("broker 1.2.3.4:9618, id 5", maxContacts),
		"":                                    nil,
		" ":                                   nil,
		"1.2.3.4:9618":                        nil,
		"1.2.3.4:9618#":                       nil,
		"1.2.3.4:9618#x":                      nil,
		"1.2.3.4:9618#5#":                     nil,
		"1.2.3.4:port#5":                      nil,
		"1.2.3.4:9618#5 #6":                   nil,
	} {
		contacts, err := ParseContacts(text)
		var got []string
		for _, c := range contacts {
			got = append(got, c.String())
		}
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != nil) {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
	}
}

func slicesOf(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

// FuzzContacts reads whatever the address of a daemon names as its brokers.
func FuzzContacts(f *testing.F) {
	f.Add("1.2.3.4:9618?sock=collector#12 5.6.7.8:9618#3#4")
	f.Add("#")
	f.Fuzz(func(t *testing.T, text string) {
		contacts, err := ParseContacts(text)
		if (err == nil) != (len(contacts) > 0) || len(contacts) > maxContacts {
			t.Errorf("%d contacts, %v", len(contacts), err)
		}
		for _, c := range contacts {
			if strings.Trim(c.ID, "0123456789") != "" || c.ID == "" || strings.Count(c.ids(), "#") != strings.Count(c.Route, " ")+min(1, len(c.Route)) {
				t.Errorf("%+v", c)
			}
		}
	})
}

// FuzzBroker lets a broker say whatever it likes after it was asked, and anybody say it to the desk.
func FuzzBroker(f *testing.F) {
	reply, hello := classads.NewAd(), classads.NewAd()
	reply.SetBool("Result", true)
	hello.SetString("ClaimId", "id")
	good := append(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(reply) }), cedartest.Written(f, func(s *cedar.Stream) {
		s.PutInt(cedar.CCBReverseConnect)
		s.PutAd(hello)
	})...)
	f.Add(good)
	f.Add(cedartest.Written(f, func(s *cedar.Stream) { s.PutAd(hello) }))
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := cedartest.Said(t, raw)
		s.SetPeerVersion(ours)
		s.SetMessageLimit(maxHello)
		if conn, err := relayed(t.Context(), s, classads.NewAd(), "id"); (conn == nil) != (err != nil) {
			t.Errorf("%v, %v", conn, err)
		}
		s = cedartest.Said(t, raw)
		s.SetMessageLimit(maxHello)
		if id, err := readHello(s); err != nil && id != "" {
			t.Errorf("%q, %v", id, err)
		}
	})
}
