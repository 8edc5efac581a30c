package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseInvocation(t *testing.T) {
	tests := map[string]struct {
		args []string
		want invocation
		bad  bool
	}{
		"as the startd calls it": {
			args: []string{"-f", "-a", "slot1_1", "submit.example.org"},
			want: invocation{logSuffix: "slot1_1", submitHost: "submit.example.org"},
		},
		"with a slot type and a job log": {
			args: []string{"-f", "-local-name", "slot_type_1", "-a2", "D_FULLDEBUG,/x/.starter.log", "-a", "slot1", "10.0.0.1"},
			want: invocation{localName: "slot_type_1", jobLog: "D_FULLDEBUG,/x/.starter.log", logSuffix: "slot1", submitHost: "10.0.0.1"},
		},
		"discovery":              {args: []string{"-classad"}, want: invocation{advertise: true}},
		"discovery, abbreviated": {args: []string{"-CLA"}, want: invocation{advertise: true}},
		"an errand":              {args: []string{"-monitor"}, want: invocation{errand: errandMonitor}},
		"an errand among others": {args: []string{"-f", "-monitor", "h"}, bad: true},
		"not discovery":          {args: []string{"-classad", "x"}, bad: true},
		"as a schedd calls it": {
			args: []string{"-f", "-job-cluster", "12", "-job-proc", "0", "-header", "(12.0) ", "-job-input-ad", "-", "-schedd-addr", "<127.0.0.1:9618?sock=x>"},
			want: invocation{local: &localInvocation{schedd: "<127.0.0.1:9618?sock=x>", input: "-", header: "(12.0) "}},
		},
		"as a startd calls it that has fetched the job": {args: []string{"-f", "-a", "slot1", "-job-input-ad", "-"}, want: invocation{logSuffix: "slot1", fetched: true}},
		"a job from a file":                             {args: []string{"-f", "-job-input-ad", "/x"}, bad: true},
		"a fetched job, with a shadow":                  {args: []string{"-f", "-job-input-ad", "-", "submit.example.org"}, bad: true},
		"a fetched job, with a keyword":                 {args: []string{"-job-keyword", "K", "-job-input-ad", "-"}, bad: true},
		"a schedd's, from a file":                       {args: []string{"-schedd-addr", "<h:1>", "-job-input-ad", "/x"}, bad: true},
		"a schedd's, without an ad":                     {args: []string{"-schedd-addr", "<h:1>"}, bad: true},
		"a job from the configuration":                  {args: []string{"-job-keyword", "K"}, bad: true},
		"a schedd's, with other files":                  {args: []string{"-schedd-addr", "<h:1>", "-job-input-ad", "-", "-job-stdout", "/x"}, bad: true},
		"a grid shell":                                  {args: []string{"-gridshell"}, bad: true},
		"an option without value":                       {args: []string{"-f", "-a"}, bad: true},
		"an unknown option":                             {args: []string{"-f", "-frobnicate", "h"}, bad: true},
		"a host that is not last":                       {args: []string{"h", "-f"}, bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseInvocation(tt.args)
			if (err != nil) != tt.bad {
				t.Fatalf("parseInvocation(%q): error %v, want an error: %v", tt.args, err, tt.bad)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(invocation{}, localInvocation{})); !tt.bad && diff != "" {
				t.Errorf("parseInvocation(%q) (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

func TestSlotName(t *testing.T) {
	tests := map[string]struct {
		inv    invocation
		prefix string
		want   string
	}{
		"from the log suffix":  {invocation{logSuffix: "slot1_1"}, "", "slot1_1"},
		"behind a prefix":      {invocation{logSuffix: "glidein.slot2"}, "", "slot2"},
		"named":                {invocation{logSuffix: "17.0", slotName: "slot3"}, "", "slot3"},
		"other resource names": {invocation{logSuffix: "x.lane4"}, "lane", "lane4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.inv.slot(tt.prefix); got != tt.want {
				t.Errorf("slot(%q) = %q, want %q", tt.prefix, got, tt.want)
			}
		})
	}
}
