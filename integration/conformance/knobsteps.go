package conformance

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// weLog fails the case unless the log of the job's slot has a line for each pattern of grep -E, under our starter. Nothing is looked for in the
// stock starter's log.
func weLog(patterns ...string) Step {
	return Do("our log has "+strings.Join(patterns, ", "), func(ctx context.Context, r *Run) error {
		if r.Side.IsStock() {
			return nil
		}
		args, _ := r.arguments([]string{"sh", "-c", `log="$(condor_config_val LOG)/StarterLog.<slot>"; for p; do grep -qE -- "$p" "$log" || echo "$p"; done`, "sh"})
		result, err := r.Pool.TryPilot(ctx, r.Side, append(args, patterns...)...)
		if err != nil {
			return err
		}
		if result.Code != 0 || strings.TrimSpace(result.Stdout) != "" {
			return fmt.Errorf("our log lacks lines, or cannot be read: exit code %d: %s%s", result.Code, result.Stdout, result.Stderr)
		}
		return nil
	})
}

// notObeyed are patterns for what our log says of these knobs, each of which is set in a file.
func notObeyed(knobs ...string) Step {
	patterns := make([]string, len(knobs))
	for i, knob := range knobs {
		patterns[i] = " " + knob + ` \(set at [^)]*\) is not obeyed: `
	}
	return weLog(patterns...)
}

// stopped is a job whose execution point has a knob with which our starter runs no job. Our log says so with these words; without the
// knob, the job runs. Under the stock starter it runs at once.
func stopped(name, shows, knobs, words string) Case {
	const logs = `cat "$(condor_config_val LOG)"/StarterLog.slot* | grep -c -- "$0"`
	count := Quietly(EP("sh", "-c", logs+` >/tmp/knobs.said; true`, words))
	wait := Wait("it ran, or our log says: "+words, func(ctx context.Context, r *Run) error {
		if r.Side.IsStock() {
			return Ends().do(ctx, r)
		}
		result, err := r.Pool.TryPilot(ctx, r.Side, "sh", "-c", `until [ "$(`+logs+`)" -gt "$(cat /tmp/knobs.said)" ]; do sleep 0.2; done`, words)
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("exit code %d: %s", result.Code, result.Stderr)
		}
		return err
	})
	return twice(Case{
		Name: name, Shows: shows, Alone: true, Submit: "hold = true\narguments = out=ran\noutput = out",
		Steps: append(append([]Step{count}, withKnobs(knobs, wait)...), Ends()),
	})
}

// ofAccount is a job that says after which account its Kerberos tickets are named, which is the account that the stock starter runs it as.
func ofAccount(name, shows, knobs, account string) Case {
	c := sited(Case{Name: name, Shows: shows, Files: []harness.File{Script("job", `echo "${KRB5CCNAME##*/}"; cat "${KRB5CCNAME#FILE:}"`+"\n")},
		Submit: "executable = job\noutput = out\nMY.SendCredential = True"}, knobs, Ends(), prints(account+".cc\nof the account", Shell("cat out")))
	return c.after(ticketsOf(account))
}

// ticketsOf gives Kerberos tickets to an account of the execution point, and to no other; <user> stands for the job's owner.
func ticketsOf(account string) Step {
	return Do("only "+account+" has tickets", func(ctx context.Context, r *Run) error {
		const script = `id "$1" >/dev/null 2>&1 || useradd -M "$1" 2>/dev/null
mkdir -p "$0" && chmod 755 "$0" && rm -f "$0"/*.cc && umask 077 && cat >"$0/$1.cc"`
		_, err := r.Pool.PilotInput(ctx, r.Side, strings.NewReader("of the account\n"), "sh", "-c", script, ticketDir, strings.ReplaceAll(account, "<user>", r.Pool.User.Name))
		return err
	})
}

// noSlotUsers takes the accounts of slots away.
func noSlotUsers(slots int) string {
	var b strings.Builder
	for i := range slots {
		fmt.Fprintf(&b, "SLOT%[1]d_USER =\nSLOT1_%[1]d_USER =\n", i+1)
	}
	return b.String()
}

// delegated is a job without file transfer, whose proxy the starter asks the shadow for. Its first certificate is valid for a time between these.
func delegated(name, shows, submit, knobs string, least, most time.Duration) Case {
	return sited(Case{Name: name, Versions: atDelegation, Shows: shows, Files: []harness.File{harness.Proxy("proxy")},
		Submit: withoutTransfer + "x509userproxy = proxy\n" + submit +
			`arguments = "-c 'printf waiting >/proc/self/comm; while [ ! -e ""$_CONDOR_SCRATCH_DIR/go"" ]; do sleep 0.1; done'"`, Fleeting: napping},
		knobs, Runs("waiting"), valid(least, most), EP("touch", "<scratch>/go"))
}

// valid fails the case unless the job's proxy is valid for a time between these.
func valid(least, most time.Duration) Step {
	return Do("how long the proxy is valid", func(ctx context.Context, r *Run) error {
		args, _ := r.arguments([]string{"cat", "<scratch>/proxy"})
		result, err := r.Pool.TryPilot(ctx, r.Side, args...)
		if err != nil {
			return err
		}
		block, _ := pem.Decode([]byte(result.Stdout))
		if block == nil {
			return fmt.Errorf("the proxy has no certificate: exit code %d, %s", result.Code, result.Stderr)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("the proxy's first certificate: %w", err)
		}
		if left := time.Until(cert.NotAfter); left < least || left > most {
			return fmt.Errorf("the proxy is valid for %s, and must be for %s to %s", left.Round(time.Second), least, most)
		}
		return nil
	})
}

// comesBack waits until an attempt to run the job has failed.
func comesBack() Step {
	return Wait("the job comes back", func(ctx context.Context, r *Run) error {
		events, err := r.Job().WaitEvents(ctx, "a failed attempt, or an end", func(events []harness.Event) bool {
			for _, e := range events {
				switch e.Number {
				case harness.EventShadowException, harness.EventRemoteError, harness.EventEvicted, harness.EventHeld, harness.EventTerminated, harness.EventAborted:
					return true
				}
			}
			return false
		})
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Number == harness.EventTerminated {
				return fmt.Errorf("the job ran at once: %s", harness.Headlines(events))
			}
		}
		return nil
	})
}
