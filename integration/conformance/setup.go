package conformance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// programs is the directory of the setups' programs in the execution points,
// $(CONFORMANCE_PROGRAMS) in configuration. It is gone when the container is.
const programs = "/usr/local/libexec/conformance"

// stamp is a knob that shows whether a daemon has read this configuration.
const stamp = "CONFORMANCE_STAMP"

// common is what all cases need. Version 23.9 keeps no history of the startd by
// default. Stuck stock starters are killed soon, so that others need not wait.
const common = `CONFORMANCE_PROGRAMS = ` + programs + `
STARTD_HISTORY = $(LOG)/startd_history
KILLING_TIMEOUT = 10
`

// scheddKnob is the name of the access point's schedd, for the configuration of execution points.
const scheddKnob = "CONFORMANCE_SCHEDD"

// place is a place for configuration, with a command that prints what the daemon
// there has read.
type place struct {
	name   string
	input  func(ctx context.Context, stdin string, argv ...string) (string, error) // as root
	daemon string                                                                  // option of condor_config_val
	// command is input as who may change the configuration.
	command func(ctx context.Context, stdin string, argv ...string) (string, error)
}

func places(pool *harness.Pool) []place {
	ep := func(side harness.Side) place {
		root := func(ctx context.Context, stdin string, argv ...string) (string, error) {
			return pool.EPInput(ctx, side, strings.NewReader(stdin), argv...)
		}
		return place{string(side), root, "-startd", func(ctx context.Context, stdin string, argv ...string) (string, error) {
			return pool.PilotInput(ctx, side, strings.NewReader(stdin), argv...)
		}}
	}
	var all []place
	for _, side := range []harness.Side{harness.Stock, harness.StockDocker, harness.StockApptainer, harness.Ours} {
		if pool.Has(side) {
			all = append(all, ep(side))
		}
	}
	submit := func(ctx context.Context, stdin string, argv ...string) (string, error) {
		return pool.APRoot(ctx, strings.NewReader(stdin), argv...)
	}
	return append(all, place{"submit", submit, "-schedd", submit})
}

// Install puts the setups of all subjects into force, in both execution points and
// on the submit side, with what the world changes, and waits until startds and schedd
// have read them. The returned function removes them.
func Install(ctx context.Context, pool *harness.Pool, subjects []Subject, world World) (remove func(context.Context) error, err error) {
	web, err := pool.Web()
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		for _, f := range s.Setup.Web {
			if err := web.Put(f.Name, f.Content); err != nil {
				return nil, err
			}
		}
	}
	if err := web.Trust(); err != nil {
		return nil, err
	}
	schedd, err := pool.AP(ctx, "condor_status", "-schedd", "-af", "Name")
	if err != nil {
		return nil, fmt.Errorf("ask for the schedd's name: %w", err)
	}
	all := places(pool)
	for _, p := range all {
		lines, files := common, []harness.File(nil)
		for _, s := range subjects {
			part := s.Setup.Execute
			if p.name == "submit" {
				part = s.Setup.Submit
				files = append(files, s.Setup.Submitting...)
			} else {
				files = append(files, s.Setup.Programs...)
			}
			if part != "" {
				lines += "# " + s.Name + "\n" + strings.TrimRight(part, "\n") + "\n"
			}
		}
		if p.name == "submit" {
			lines = strings.TrimPrefix(lines, common) + world.Submit
		} else {
			lines += world.Execute + scheddKnob + " = " + strings.TrimSpace(schedd) + "\n"
		}
		if err := p.install(ctx, lines, files); err != nil {
			return nil, fmt.Errorf("setting up the %s side: %w", p.name, err)
		}
	}
	return func(ctx context.Context) error {
		for _, p := range all {
			_, err := p.command(ctx, "", "sh", "-c", configFile+` && rm -rf "$f" && condor_reconfig`)
			if err == nil {
				_, err = p.input(ctx, "", "rm", "-rf", programs)
			}
			if err != nil {
				return fmt.Errorf("removing the setup of the %s side: %w", p.name, err)
			}
		}
		return web.Distrust()
	}, nil
}

// configFile sets the shell's variable f to the path of the file: in the directory
// that is read last, after the files of the pool's own setup.
const configFile = `f=$(condor_config_val LOCAL_CONFIG_DIR | sed 's/.*[, ]//')/98-conformance.conf`

func (p place) install(ctx context.Context, lines string, files []harness.File) error {
	for _, f := range files {
		mode := f.Mode
		if mode == 0 {
			mode = 0o755
		}
		if !fs.ValidPath(f.Name) {
			return fmt.Errorf("a program is called %q", f.Name)
		}
		to := path.Join(programs, f.Name)
		// Rename, so that nobody reads half of it.
		script := `mkdir -p "$(dirname "$0")" && cat >"$0.new" && chmod "$1" "$0.new" && mv "$0.new" "$0"`
		if _, err := p.input(ctx, string(f.Content), "sh", "-c", script, to, fmt.Sprintf("%o", mode)); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(lines))
	want := hex.EncodeToString(sum[:8])
	lines += stamp + " = " + want + "\n"
	if _, err := p.command(ctx, lines, "sh", "-c", configFile+` && cat >"$f" && condor_reconfig`); err != nil {
		return err
	}
	const turn = 200 * time.Millisecond
	for {
		out, err := p.input(ctx, "", "condor_config_val", p.daemon, stamp)
		if err == nil && strings.TrimSpace(out) == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the daemon does not know its new configuration: %w (%v)", context.Cause(ctx), err)
		case <-time.After(turn):
		}
	}
}
