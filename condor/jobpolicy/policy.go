package jobpolicy

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
)

// Action is what a policy wants.
type Action int

// The actions. Stay at the end of a job means that it runs again.
const (
	Stay Action = iota
	Hold
	Remove
	Vacate
)

// Decision is an action, and why.
type Decision struct {
	Action        Action
	Reason        string
	Code, Subcode int // of a hold
}

// Hold codes (condor_utils/condor_holdcodes.h).
const (
	codeJob       = 3
	codeUndefined = 5
	codeSystem    = 26
	codeDuration  = 46
	codeExecute   = 47
)

// Values of JobStatus (condor_includes/proc.h).
const (
	statusRunning   = 2
	statusRemoved   = 3
	statusCompleted = 4
	statusHeld      = 5
	statusSuspended = 7
)

// Policy are the policies of a site, for any job. It never changes.
type Policy struct {
	knobs         *config.Config
	holds, remove []system
	// Invalid are knobs whose expressions cannot be read; they count as not set, as in HTCondor.
	Invalid []error
}

// system is one policy of the site.
type system struct {
	kind string // the knob for one policy
	knob string // its own: the same, or with a name behind it
	expr *classads.Expr
}

// Of reads the policies of the site.
func Of(knobs *config.Config) *Policy {
	p := &Policy{knobs: knobs}
	p.holds = p.list("SYSTEM_PERIODIC_HOLD")
	p.remove = p.list("SYSTEM_PERIODIC_REMOVE")
	return p
}

// list reads KNOB_NAME for each of KNOB_NAMES, then KNOB (user_job_policy.cpp:load_policy_list).
func (p *Policy) list(knob string) []system {
	var all []system
	var names []string
	for _, tag := range p.knobs.List(knob + "_NAMES") {
		if !strings.EqualFold(tag, "NAMES") {
			names = append(names, knob+"_"+tag)
		}
	}
	names = append(names, knob)
	for _, name := range names {
		expr, err := p.knobs.Expr(name)
		if err != nil {
			p.Invalid = append(p.Invalid, err)
			continue
		}
		if expr == nil {
			continue
		}
		if v, is := expr.Literal(); is && !truth(v) {
			continue
		}
		all = append(all, system{knob, name, expr})
	}
	return all
}

// truth says whether a value lets a policy fire: true, or a number that is not 0. Undefined does not
// (user_job_policy.cpp:AnalyzeSinglePeriodicPolicy).
func truth(v classads.Value) bool {
	if b, ok := v.Bool(); ok {
		return b
	}
	if i, ok := v.Int(); ok {
		return i != 0
	}
	r, ok := v.Real()
	return ok && int64(r) != 0
}

// WhileRunning decides about a job that runs (UserPolicy::AnalyzePolicy, PERIODIC_ONLY).
func (p *Policy) WhileRunning(ad *classads.Ad, now time.Time) Decision {
	return p.analyze(withRunTime(ad, now), now, false)
}

// AtExit decides about a job that has ended by itself (PERIODIC_THEN_EXIT). Remove means that it leaves the
// queue as it should, Stay that it runs again.
func (p *Policy) AtExit(ad *classads.Ad, now time.Time) Decision {
	return p.analyze(withRunTime(ad, now), now, true)
}

// withRunTime counts the present run in RemoteWallClockTime (condor_user_policy.cpp:updateJobTime;
// starter_user_policy.cpp:getJobBirthday).
func withRunTime(ad *classads.Ad, now time.Time) *classads.Ad {
	ad = ad.Clone()
	total := ad.RealOr("RemoteWallClockTime", 0)
	if began := ad.IntOr("JobStartDate", 0); began > 0 {
		total += float64(now.Unix() - began)
	}
	ad.SetReal("RemoteWallClockTime", total)
	return ad
}

func (p *Policy) analyze(ad *classads.Ad, now time.Time, exits bool) Decision {
	status := ad.IntOr("JobStatus", statusRunning)
	if status == statusRemoved {
		if exits {
			return fired(Remove, "OnExitRemove", "true", "TRUE")
		}
		return Decision{}
	}
	if status == statusRunning || status == statusSuspended {
		if d, is := duration(ad, now); is {
			return d
		}
		if !exits {
			if d, is := p.periodic(ad, "PeriodicVacate", nil, Vacate); is {
				return d
			}
		}
	}
	if d, is := timer(ad, now); is {
		return d
	}
	if status != statusHeld && status != statusCompleted {
		if d, is := p.periodic(ad, "PeriodicHold", p.holds, Hold); is {
			return d
		}
	}
	if d, is := p.periodic(ad, "PeriodicRemove", p.remove, Remove); is {
		return d
	}
	if !exits {
		return Decision{}
	}
	if d, is := p.periodic(ad, "OnExitHold", nil, Hold); is {
		return d
	}
	text := "UNDEFINED"
	if expr, ok := ad.Lookup("OnExitRemove"); ok {
		text = expr.OldString()
		if v := ad.Eval("OnExitRemove", classads.Env{}); isNumber(v) && !truth(v) {
			return fired(Stay, "OnExitRemove", text, "FALSE")
		}
	}
	return fired(Remove, "OnExitRemove", text, "TRUE")
}

func isNumber(v classads.Value) bool {
	_, is := v.Number()
	_, truth := v.Bool()
	return is || truth
}

// duration decides by how long the job may be here, and may execute.
func duration(ad *classads.Ad, now time.Time) (Decision, bool) {
	born, err := ad.GetInt("ShadowBday")
	if err != nil {
		return Decision{}, false
	}
	if most, err := ad.GetInt("AllowedJobDuration"); err == nil && now.Unix()-born >= most {
		return Decision{Hold, "The job exceeded allowed job duration of " + short(most), codeDuration, 0}, true
	}
	most, errMost := ad.GetInt("AllowedExecuteDuration")
	began, errBegan := ad.GetInt("JobCurrentStartExecutingDate")
	if errMost != nil || errBegan != nil || began < born {
		return Decision{}, false
	}
	if now.Unix()-began > most {
		return Decision{Hold, "The job exceeded allowed execute duration of " + short(most), codeExecute, 0}, true
	}
	return Decision{}, false
}

// short is a time as HTCondor prints it (condor_utils/format_time.cpp:format_time_short).
func short(seconds int64) string {
	if seconds < 0 {
		return "[?????]"
	}
	text := fmt.Sprintf("%3d+%02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
	return strings.TrimPrefix(strings.TrimLeft(text, " 0+"), ":")
}

// timer decides by the time at which the job is to be removed.
func timer(ad *classads.Ad, now time.Time) (Decision, bool) {
	const name = "TimerRemove"
	expr, ok := ad.Lookup(name)
	if !ok {
		return Decision{}, false
	}
	at, err := ad.GetInt(name)
	if err != nil {
		return Decision{Hold, sentence("job attribute", name, expr.OldString(), "UNDEFINED"), codeUndefined, 0}, true
	}
	if at < 0 || at >= now.Unix() {
		return Decision{}, false
	}
	return fired(Remove, name, expr.OldString(), "TRUE"), true
}

// periodic decides by an attribute of the job, then by the policies of the site for the same.
func (p *Policy) periodic(ad *classads.Ad, name string, site []system, a Action) (Decision, bool) {
	if expr, ok := ad.Lookup(name); ok && truth(ad.Eval(name, classads.Env{})) {
		d := fired(a, name, expr.OldString(), "TRUE")
		d.Subcode = int(number(ad.Eval(name+"SubCode", classads.Env{})))
		if reason, ok := ad.Eval(name+"Reason", classads.Env{}).Str(); ok && reason != "" {
			d.Reason = reason
		}
		return d, true
	}
	for _, s := range site {
		if !truth(s.expr.Eval(classads.Env{My: ad})) {
			continue
		}
		d := Decision{a, sentence("system macro", s.kind, s.expr.OldString(), "TRUE"), codeSystem, 0}
		if expr, err := p.knobs.Expr(s.knob + "_SUBCODE"); err == nil && expr != nil {
			d.Subcode = int(number(expr.Eval(classads.Env{My: ad})))
		}
		if expr, err := p.knobs.Expr(s.knob + "_REASON"); err == nil && expr != nil {
			if reason, ok := expr.Eval(classads.Env{My: ad}).Str(); ok && reason != "" {
				d.Reason = reason
			}
		}
		return d, true
	}
	return Decision{}, false
}

func number(v classads.Value) float64 {
	f, _ := v.Number()
	return f
}

func fired(a Action, name, text, value string) Decision {
	return Decision{a, sentence("job attribute", name, text, value), codeJob, 0}
}

func sentence(source, name, text, value string) string {
	return fmt.Sprintf("The %s %s expression '%s' evaluated to %s", source, name, text, value)
}
