package cedar

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSinful(t *testing.T) {
	for _, c := range []struct {
		text, host string
		port       int
		params     map[string]string
		print      string // if other than text
	}{
		{"<127.0.0.1:9618>", "127.0.0.1", 9618, nil, ""},
		{"<[::1]:9618>", "::1", 9618, nil, ""},
		{"<h.example.org:1?noUDP>", "h.example.org", 1, map[string]string{"noUDP": ""}, ""},
		{"<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618&alias=h&noUDP&sock=startd_1_43af>", "127.0.0.1", 9618,
			map[string]string{"addrs": "127.0.0.1-9618+[--1]-9618", "alias": "h", "noUDP": "", "sock": "startd_1_43af"}, ""},
		{"<1.2.3.4:5?sock=a;alias=b>", "1.2.3.4", 5, map[string]string{"sock": "a", "alias": "b"}, "<1.2.3.4:5?alias=b&sock=a>"},
		{"<1.2.3.4:5?CCBID=9.9.9.9:9618%3fsock%3dcollector#12%208.8.8.8:9618#3>", "1.2.3.4", 5,
			map[string]string{"CCBID": "9.9.9.9:9618?sock=collector#12 8.8.8.8:9618#3"}, ""},
		{"<1.2.3.4:5?sock=a&sock=b>", "1.2.3.4", 5, map[string]string{"sock": "b"}, "<1.2.3.4:5?sock=b>"},
		{"9.9.9.9:9618#12", "", 0, nil, "error"},
		{"9.9.9.9:9618?noUDP", "9.9.9.9", 9618, map[string]string{"noUDP": ""}, "<9.9.9.9:9618?noUDP>"},
		{"<0.0.0.0:0?sock=x>", "0.0.0.0", 0, map[string]string{"sock": "x"}, ""},
		{"", "", 0, nil, "error"},
		{"<>", "", 0, nil, "error"},
		{"<1.2.3.4:5", "", 0, nil, "error"},
		{"<1.2.3.4:5><", "", 0, nil, "error"},
		{"<1.2.3.4:65536>", "", 0, nil, "error"},
		{"<1.2.3.4:-1>", "", 0, nil, "error"},
		{"<[::1:5>", "", 0, nil, "error"},
		{"<[x]:5>", "", 0, nil, "error"},
		{"<[::1]5>", "", 0, nil, "error"},
		{"<1.2.3.4:5?=x>", "", 0, nil, "error"},
		{"<1.2.3.4:5?a=%4>", "", 0, nil, "error"},
		{"<1.2.3.4:5?a=%zz>", "", 0, nil, "error"},
		{"<1.2.3.4:5?addrs=1.2.3.4>", "", 0, nil, "error"},
		{"<1.2.3.4:5?addrs=x-5>", "", 0, nil, "error"},
		{"<1.2.3.4:5?sock=../../x>", "", 0, nil, "error"},
		{"<1.2.3.4:5?sock=..>", "", 0, nil, "error"},
		{"<1.2.3.4:5?a=b\nc>", "", 0, nil, "error"},
	} {
		s, err := ParseSinful(c.text)
		if c.print == "error" {
			if err == nil {
				t.Errorf("%q: parsed as %v", c.text, s)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(Sinful{Host: c.host, Port: c.port, Params: c.params}, s); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
		want := c.print
		if want == "" {
			want = c.text
		}
		if got := s.String(); got != want {
			t.Errorf("%q prints as %q", c.text, got)
		}
	}
}

func TestRoute(t *testing.T) {
	for _, c := range []struct {
		name, text string
		network    Network
		want       string
	}{
		{"no list", "<10.0.0.1:5?sock=x>", Network{}, "<10.0.0.1:5?sock=x>"},
		{"loopback of both kinds, the first wins", "<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618>", Network{},
			"<127.0.0.1:9618?addrs=127.0.0.1-9618+[--1]-9618>"},
		{"global before private", "<10.0.0.1:5?addrs=10.0.0.1-5+[2001-db8--1]-6>", Network{},
			"<[2001:db8::1]:6?addrs=10.0.0.1-5+[2001-db8--1]-6>"},
		{"without IPv6", "<10.0.0.1:5?addrs=10.0.0.1-5+[2001-db8--1]-6>", Network{NoIPv6: true},
			"<10.0.0.1:5?addrs=10.0.0.1-5+[2001-db8--1]-6>"},
		{"IPv4 among equals", "<[fd00::1]:6?addrs=[fd00--1]-6+10.0.0.1-5>", Network{Prefer: IPv4}, "<10.0.0.1:5?addrs=[fd00--1]-6+10.0.0.1-5>"},
		{"IPv6 among equals", "<10.0.0.1:5?addrs=10.0.0.1-5+[fd00--1]-6>", Network{Prefer: IPv6}, "<[fd00::1]:6?addrs=10.0.0.1-5+[fd00--1]-6>"},
		{"a better one before IPv4", "<10.0.0.1:5?addrs=10.0.0.1-5+[2001-db8--1]-6>", Network{Prefer: IPv4},
			"<[2001:db8::1]:6?addrs=10.0.0.1-5+[2001-db8--1]-6>"},
		{"without IPv4", "<198.18.0.2:5?addrs=198.18.0.2-5+[fd00--1]-6>", Network{NoIPv4: true, Prefer: IPv4},
			"<[fd00::1]:6?addrs=198.18.0.2-5+[fd00--1]-6>"},
		{"link-local last", "<1.1.1.1:5?addrs=[fe80--1]-1+169.254.0.1-2>", Network{}, "<169.254.0.1:2?addrs=[fe80--1]-1+169.254.0.1-2>"},
		{"no protocol left", "<1.1.1.1:5?addrs=1.1.1.1-5>", Network{NoIPv4: true}, "error"},
		{"private network", "<1.1.1.1:5?CCBID=2.2.2.2:9618#1&PrivAddr=%3c10.0.0.1:7%3fsock%3dx%3e&PrivNet=lan&sock=x>", Network{Private: "lan"},
			"<10.0.0.1:7?sock=x>"},
		{"private network without an address of its own", "<1.1.1.1:5?CCBID=2.2.2.2:9618#1&PrivNet=lan>", Network{Private: "lan"},
			"<1.1.1.1:5?PrivNet=lan>"},
		{"other network", "<1.1.1.1:5?CCBID=2.2.2.2:9618#1&PrivNet=lan>", Network{Private: "wan"},
			"<1.1.1.1:5?CCBID=2.2.2.2:9618#1&PrivNet=lan>"},
		{"nowhere", "<0.0.0.0:0?sock=x>", Network{}, "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := ParseSinful(c.text)
			must(t, err)
			got, err := s.Route(c.network)
			if c.want == "error" {
				if err == nil {
					t.Errorf("got %s", got)
				}
				return
			}
			must(t, err)
			if got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWithSock(t *testing.T) {
	s, err := ParseSinful("<1.1.1.1:5?PrivAddr=%3c10.0.0.1:7%3fsock%3dx%3e&sock=x>")
	must(t, err)
	if got, want := s.WithSock("y").String(), "<1.1.1.1:5?PrivAddr=%3c10.0.0.1:7%3fsock%3dy%3e&sock=y>"; got != want {
		t.Errorf("got %s", got)
	}
	if s.SharedPortID() != "x" {
		t.Error("the original has changed")
	}
	if got := s.DialAddress(); got != "1.1.1.1:5" {
		t.Error(got)
	}
}
