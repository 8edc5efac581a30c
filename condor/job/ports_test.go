package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
)

func TestPublishPorts(t *testing.T) {
	for name, tt := range map[string]struct {
		job  string
		runs bool
		want map[string]string
	}{
		"none":  {"A_ContainerPort = 1\n", true, map[string]string{}},
		"two":   {"ContainerServiceNames = \"web, db\"\nweb_ContainerPort = 8080\nDB_ContainerPort = 5432\n", true, map[string]string{"web_HostPort": "8080", "db_HostPort": "5432"}},
		"ended": {"ContainerServiceNames = \"web\"\nweb_ContainerPort = 8080\n", false, map[string]string{"web_HostPort": "undefined"}},
		"odd": {"ContainerServiceNames = \"far none text minus ok\"\nfar_ContainerPort = 65536\ntext_ContainerPort = \"80\"\nminus_ContainerPort = -1\nok_ContainerPort = 65535\n", true,
			map[string]string{"ok_HostPort": "65535"}},
	} {
		t.Run(name, func(t *testing.T) {
			jobAd, err := classads.ParseOld(tt.job)
			if err != nil {
				t.Fatal(err)
			}
			ad := classads.NewAd()
			PublishPorts(ad, jobAd, tt.runs)
			got := map[string]string{}
			for name, e := range ad.All() {
				got[name] = e.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
