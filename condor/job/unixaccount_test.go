package job

import "testing"

func TestUnixAccount(t *testing.T) {
	same := map[string]string{"UID_DOMAIN": "example.org"}
	with := func(more ...string) map[string]string {
		all := map[string]string{"UID_DOMAIN": "example.org"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	home := Origin{Slot: "slot1_2", SubmitHost: "ap.example.org"}
	for name, test := range map[string]struct {
		ad    string
		from  Origin
		knobs map[string]string
		want  string
	}{
		"the owner":                  {`UidDomain = "Example.org"`, home, same, "alice"},
		"a host named as the domain": {`UidDomain = "example.org"`, Origin{SubmitHost: "EXAMPLE.ORG"}, same, "alice"},
		"another domain":             {`UidDomain = "elsewhere.org"`, home, same, "nobody"},
		"no domain":                  {`Owner = "alice"`, home, same, "nobody"},
		"a host of another domain":   {`UidDomain = "example.org"`, Origin{SubmitHost: "ap.badexample.org"}, same, "nobody"},
		"that is trusted":            {`UidDomain = "example.org"`, Origin{SubmitHost: "10.0.0.1"}, with("TRUST_UID_DOMAIN", "true"), "alice"},
		"an address":                 {`UidDomain = "example.org"`, Origin{SubmitHost: "10.0.0.1"}, same, "nobody"},
		"of this machine":            {`UidDomain = "example.org"`, Origin{SubmitHost: "10.0.0.1", Local: true}, same, "alice"},
		"that is not trusted":        {`UidDomain = "example.org"`, Origin{SubmitHost: "10.0.0.1", Local: true}, with("TRUST_LOCAL_UID_DOMAIN", "false"), "nobody"},
		"not allowed":                {`UidDomain = "example.org"`, home, with("STARTER_ALLOW_RUNAS_OWNER", "false"), "nobody"},
		"not allowed to others":      {"UidDomain = \"example.org\"\nX = 1", home, with("STARTER_ALLOW_RUNAS_OWNER", "TARGET.X =?= 2"), "nobody"},
		"not wanted":                 {"UidDomain = \"example.org\"\nRunAsOwner = false", home, same, "nobody"},
		"the slot's":                 {"", home, with("SLOT1_2_USER", "two", "NOBODY_SLOT_USER", "some"), "two"},
		"another slot's":             {"", home, with("SLOT1_USER", "one", "NOBODY_SLOT_USER", "some"), "some"},
		"no slot":                    {"", Origin{}, with("SLOT1_USER", "one"), "one"},
		"root":                       {"", home, with("SLOT1_2_USER", "root"), "nobody"},
	} {
		if got := UnixAccount(mustAd(t, test.ad), Info{Owner: "alice"}, test.from, knobs(test.knobs)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
