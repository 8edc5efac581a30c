package job

import (
	"fmt"
	"path"
	"syscall"
	"time"

	"podstarter/classads"
)

// Prefixes of the attributes for a program that runs before or after the job's
// own (condor_starter.V6.1/script_proc.cpp).
const (
	PreScript  = "Pre"
	PostScript = "Post"
)

// ScriptNice is the nice value of such a program (script_proc.cpp:StartJob).
const ScriptNice = 10

// ScriptArgv0 is argv[0] of such a program.
func ScriptArgv0(which string) string { return "condor_" + which + "script" }

// ScriptsAllowed reports whether the site allows jobs to have such programs
// (starter.cpp:SpawnJobOrPreScript).
func ScriptsAllowed(ad, machine *classads.Ad, k Knobs) (bool, error) {
	return k.EvalBool("STARTER_ALLOW_JOB_PRE_AND_POST_CMD", false, machine, ad)
}

// ScriptOf returns what to run before or after the job; ok is false for nothing.
func ScriptOf(ad *classads.Ad, which string, p Place) (c Command, ok bool, err error) {
	c.Path = ad.StringOr(which+"Cmd", "")
	if c.Path == "" {
		return c, false, nil
	}
	if !path.IsAbs(c.Path) {
		c.Path = p.Scratch + "/" + c.Path
	}
	if raw := ad.StringOr(which+"Arguments", ""); raw != "" {
		if c.Args, err = SplitV2(raw); err != nil {
			return c, true, fmt.Errorf("attribute %sArguments: %w", which, err)
		}
		return c, true, nil
	}
	if c.Args, err = SplitV1(ad.StringOr(which+"Args", "")); err != nil {
		return c, true, fmt.Errorf("attribute %sArgs: %w", which, err)
	}
	return c, true, nil
}

// ScriptEnvironment builds the environment of such a program: its own variables,
// not the job's, and those that a starter sets.
func ScriptEnvironment(ad *classads.Ad, which string, k Knobs, s Surroundings) (*Env, error) {
	env := NewEnv()
	if raw := ad.StringOr(which+"Environment", ""); raw != "" {
		if err := env.MergeV2(raw); err != nil {
			return nil, fmt.Errorf("attribute %sEnvironment: %w", which, err)
		}
	} else if raw := ad.StringOr(which+"Env", ""); raw != "" {
		if err := env.MergeV1(raw, ""); err != nil {
			return nil, fmt.Errorf("attribute %sEnv: %w", which, err)
		}
	}
	return env, Publish(env, ad, k, s)
}

// ScriptFailed reports whether a program ended in another way than the one that
// the job calls a success. If the job defines none, no end is a failure
// (starter_util.cpp:computeDesiredExitStatus).
func ScriptFailed(ad *classads.Ad, which string, status syscall.WaitStatus) bool {
	code, errCode := ad.GetInt("Success" + which + "ExitCode")
	signal, errSignal := ad.GetInt("Success" + which + "ExitSignal")
	if errCode != nil && errSignal != nil {
		return false
	}
	if ad.BoolOr("Success"+which+"ExitBySignal", false) {
		return !status.Signaled() || int64(status.Signal()) != signal
	}
	return !status.Exited() || int64(status.ExitStatus()) != code&0xff
}

// Script is the end of such a program, for updates.
type Script struct {
	Which          string
	PID            int
	Started, Ended time.Time
	Status         syscall.WaitStatus
}

// PublishScript writes s into an update (user_proc.cpp:PublishUpdateAd).
func PublishScript(ad *classads.Ad, s Script) {
	ad.SetInt(s.Which+"JobPid", int64(s.PID))
	ad.SetInt(s.Which+"JobStartDate", s.Started.Unix())
	ad.SetReal(s.Which+"JobDuration", max(0, s.Ended.Sub(s.Started).Seconds()))
	ad.SetBool(s.Which+"ExitBySignal", s.Status.Signaled())
	if s.Status.Signaled() {
		ad.SetInt(s.Which+"ExitSignal", int64(s.Status.Signal()))
		ad.SetString(s.Which+"ExitReason", "died on "+describeSignal(s.Status.Signal()))
		return
	}
	ad.SetInt(s.Which+"ExitCode", int64(s.Status.ExitStatus()))
}
