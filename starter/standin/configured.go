package standin

import (
	"fmt"
	"strconv"
	"strings"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
)

// configured are the attributes that the configuration can give, by a knob KEYWORD_ATTRIBUTE or KEYWORD_ and the other name
// (jic_local_config.cpp:getLocalJobAd).
var configured = []struct {
	attribute, also string
	text            bool // a string, which may lack its quotes
}{
	{"Cmd", "executable", true}, {"Iwd", "initialdir", true}, {"Owner", "", true},
	{"In", "input", true}, {"Out", "output", true}, {"Err", "error", true},
	{"Args", "arguments", true}, {"Arguments", "arguments2", true}, {"Env", "environment", true}, {"Environment", "environment2", true},
	{"JarFiles", "jar_files", true}, {"KillSig", "kill_sig", false}, {"StarterWaitForDebug", "starter_wait_for_debug", false},
	{"StarterUserLog", "log", true}, {"StarterUserLogUseXML", "log_use_xml", false}, {"ClusterId", "cluster", false}, {"ProcId", "proc", false},
}

// complete adds what the configuration says of a job with a keyword, where its ad says nothing.
func complete(ad *classads.Ad, knobs *config.Config) error {
	keyword := ad.StringOr("JobKeyword", "")
	if keyword == "" {
		return nil
	}
	knob := func(names ...string) (name, value string) {
		for _, n := range names {
			if name = keyword + "_" + n; n == "" {
				continue
			}
			if value = knobs.String(name, ""); value != "" {
				return name, value
			}
		}
		return name, ""
	}
	if !ad.Has("JobUniverse") {
		name, value := knob("JobUniverse", "universe")
		u, known := universe(value)
		if !known {
			return fmt.Errorf("the job has JobKeyword %.80q and no JobUniverse, and the knob %.80s is %.80q, which is no universe", keyword, name, value)
		}
		ad.SetInt("JobUniverse", int64(u))
	}
	for _, c := range configured {
		if ad.Has(c.attribute) {
			continue
		}
		name, value := knob(c.attribute, c.also)
		switch {
		case value == "":
		case c.text && !strings.HasPrefix(value, `"`):
			ad.SetString(c.attribute, value)
		default:
			expr, err := classads.ParseOldExpr(value)
			if err != nil {
				return fmt.Errorf("the knob %.80s is no value for the job's attribute %s: %w", name, c.attribute, err)
			}
			ad.Insert(c.attribute, expr)
		}
	}
	if _, err := ad.GetString("Iwd"); err != nil { // as with stock, only an ad without keyword may lack it
		return fmt.Errorf("the job has JobKeyword %.80q, and neither its ad nor a knob gives its directory: %w", keyword, err)
	}
	return nil
}

// universe reads the number or the name of one.
func universe(text string) (job.Universe, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return job.Universe(n), true
	}
	for u := job.Universe(1); u <= job.VM; u++ {
		if strings.EqualFold(u.String(), text) {
			return u, true
		}
	}
	return 0, false
}
