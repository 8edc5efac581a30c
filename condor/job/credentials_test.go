package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
)

func TestServices(t *testing.T) {
	for _, tt := range []struct {
		ad   string
		want []string
		ok   bool
	}{
		{"A = 1", nil, false},
		{`OAuthServicesNeeded = ""`, nil, true},
		{`OAuthServicesNeeded = 7`, nil, false},
		{`OAuthServicesNeeded = "scitokens"`, []string{"scitokens"}, true},
		{`OAuthServicesNeeded = "box*a, box*b scitokens,box*a"`, []string{"box*a", "box*b", "scitokens"}, true},
		{`OAuthServicesNeeded = strcat("a", ClusterId)` + "\nClusterId = 3", []string{"a3"}, true},
	} {
		ad, err := classads.ParseOld(tt.ad)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Services(ad)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
			t.Errorf("%s: %t\n%s", tt.ad, ok, diff)
		}
	}
}

func TestProxyName(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "/home/alice/x509up_u1000": "x509up_u1000", "proxy": "proxy", "dir/": "", "..": "", "a/..": "", "a/.": "",
	} {
		ad := classads.NewAd()
		ad.SetString("x509userproxy", value)
		if got := ProxyName(ad); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestProxyExpiry(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name  string
		ad    string
		knobs map[string]string
		want  time.Time
		bad   bool
	}{
		{name: "a day", want: now.Add(24 * time.Hour)},
		{name: "the site's", knobs: map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "60"}, want: now.Add(time.Minute)},
		{name: "the job's", ad: "DelegateJobGSICredentialsLifetime = 30", knobs: map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "60"}, want: now.Add(30 * time.Second)},
		{name: "as long as the original", ad: "DelegateJobGSICredentialsLifetime = 0"},
		{name: "as long as the original, at the site", knobs: map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "0"}},
		{name: "no delegation", knobs: map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS": "False"}},
		{name: "for ever", ad: "DelegateJobGSICredentialsLifetime = 9223372036854775807"},
		{name: "nonsense", knobs: map[string]string{"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME": "soon"}, want: now.Add(24 * time.Hour), bad: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ad, err := classads.ParseOld(tt.ad)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ProxyExpiry(ad, config.FromMap(tt.knobs), now)
			if !got.Equal(tt.want) || (err != nil) != tt.bad {
				t.Errorf("%s, %v; want %s", got, err, tt.want)
			}
		})
	}
}
