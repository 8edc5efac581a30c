package job

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/internal/cedar"
	"podstarter/testdata/streams"
)

// recordedAds returns job ads as shadows have sent them.
func recordedAds(t testing.TB) (all []*classads.Ad) {
	const recordings = "../../testdata/streams"
	for _, r := range streams.All(t, recordings) {
		if r.Command() != streams.Calls {
			continue
		}
		s, err := cedar.Adopt(streams.Say(t, r.Sealed()))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.GetInt()
		ad, err2 := s.GetAd()
		if err := errors.Join(err, err2, s.Close()); err != nil {
			t.Fatal(err)
		}
		all = append(all, ad)
	}
	return all
}

// FuzzJobAd calls every function that reads a job's ad, with any ad.
func FuzzJobAd(f *testing.F) {
	for _, ad := range recordedAds(f) {
		f.Add(ad.FormatOld())
	}
	f.Add("JobUniverse = 5\nClusterId = -1\nProcId = 2147483648\nArguments = \"'\"\nEnvironment = \"a\"\nKillSig = 99999\nDeferralTime = 1e300\nStarterUserLog = \"../../x\"\n")
	k := config.FromMap(map[string]string{"JOB_INHERITS_STARTER_ENVIRONMENT": "PATH"})
	place := Place{FileTransfer: true, Scratch: "/scratch", Iwd: "/scratch"}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classads.ParseOld(text)
		if err != nil {
			return
		}
		machine := classads.NewAd()
		info, err := Read(ad, "domain")
		if err == nil && (info.Cluster < 0 || info.Proc < 0 || info.Lease < 0) {
			t.Errorf("%+v", info)
		}
		if command, err := CommandOf(ad, place, PlainRules); err == nil {
			for _, arg := range append(command.Args, command.Path) {
				if strings.Contains(arg, "\x00") {
					t.Errorf("argument %q", arg)
				}
			}
		}
		if env, err := Environment(ad, k, Surroundings{Scratch: "/scratch", Iwd: "/scratch", FileTransfer: true, Slot: "slot1", Environ: []string{"PATH=/bin"}}); err == nil && env == nil {
			t.Error("no environment")
		}
		if wait, err := Deferral(ad, now); err == nil && wait < 0 {
			t.Errorf("wait for %v", wait)
		}
		_, _ = ProxyExpiry(ad, k, now)
		_, _ = Services(ad)
		_, _ = ReadHooks(ad, k)
		_, _ = LimitsOf(ad, machine, "slot1", k)
		_, _ = ScriptsAllowed(ad, machine, k)
		_, _, _ = ScriptOf(ad, "Pre", place)
		_, _, _, _ = ProxyName(ad), SignalsOf(ad), StdioOf(ad, place), CheckpointsOf(ad)
		ForwardToE(classads.NewAd(), ad)
		if refused := Refused(ad, info, true); refused != nil && (refused.Code < 1 || refused.Error() == "") {
			t.Errorf("refused with %d: %v", refused.Code, refused)
		} else if dir := ManifestDir(ad, info); refused == nil && dir != "" && !filepath.IsLocal(dir) {
			t.Errorf("a manifest in %q", dir)
		}
		Localize(ad, info, "/scratch")
	})
}

// TestRecordedJobs: every recorded job can be run as it is.
func TestRecordedJobs(t *testing.T) {
	for _, ad := range recordedAds(t) {
		info, err := Read(ad, "elsewhere.invalid")
		if err != nil {
			t.Error(err)
		}
		if info.Universe != Vanilla || !info.FileTransfer || info.Owner != "alice" || info.User != "alice@pool.invalid" || info.Lease != 40*time.Minute || info.ShadowAddress == "" || info.ShadowVersion == "" {
			t.Errorf("%+v", info)
		}
		if _, err := CommandOf(ad, Place{FileTransfer: true, Scratch: "/s", Iwd: "/s"}, Rules(ad.IntOr("JobUniverse", 0)%3)); err != nil {
			t.Error(err)
		}
	}
}
