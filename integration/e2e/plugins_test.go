//go:build pool

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// pythonPlugin takes lists of files, and reports its identity.
const pythonPlugin = `#!/usr/bin/python3
import os, sys
import re
if sys.argv[1:] == ["-classad"]:
    print('MultipleFileSupport = true\nPluginVersion = "1.0"\nPluginType = "FileTransfer"\nSupportedMethods = "e2emany"')
    sys.exit(0)
print("to be logged")
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
ads = re.findall(r'\[.*?\]', open(args["-infile"]).read())
with open(args["-outfile"], "w") as out:
    for ad in ads:
        url = re.search(r'Url = "([^"]*)"', ad).group(1)
        name = re.search(r'LocalFileName = "([^"]*)"', ad).group(1)
        with open(name, "w") as f:
            f.write("%s by %d.%d\n" % (url, os.getuid(), os.getgid()))
        out.write('[ TransferUrl = "%s"; TransferFileName = "%s"; TransferSuccess = true; TransferProtocol = "e2emany"; TransferTotalBytes = 10; TransferFileBytes = 10; TransferStartTime = 1; TransferEndTime = 2; ConnectionTimeSeconds = 0.5 ]\n' % (url, os.path.basename(name)))
`

// onePlugin moves one file.
const onePlugin = `#!/bin/sh
if [ "$1" = -classad ]; then echo 'SupportedMethods = "e2eone"'; exit; fi
echo "$1" >"$2"
`

// TestModePlugins: plugins of the site, by both protocols, fetch inputs as the job's user, and the job finds
// its own files.
func TestModePlugins(t *testing.T) {
	oursOnly(t)
	many := siteProgram(t, "many_plugin.py", pythonPlugin)
	configure(t, "FILETRANSFER_PLUGINS = "+many+", "+siteProgram(t, "one_plugin.sh", onePlugin), "LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS = D_ALWAYS")
	s := script("#!/bin/sh\ncat one two three; stat -c '%u %g' one two; ls -A | grep -e '[.]in$' -e '[.]out$'; :\n",
		"transfer_input_files = e2emany://h/one, e2eone://h/two, e2emany://h/three")
	s.Name = "plugins"
	// The startd has not asked about these methods: starters read their configuration by themselves.
	s.Requirements = "TARGET.HasFileTransferPluginMethods =!= undefined"
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	uid := userOf(t, job)
	who, owner := fmt.Sprintf("%d.65533", uid), fmt.Sprintf("%d %d", uid, uid)
	got := output(t, job, "out")
	if pool.Mode == harness.Rootless { // the pilot's user and group
		lines := strings.Split(strings.TrimSpace(got), "\n")
		_, who, _ = strings.Cut(lines[0], " by ")
		owner = lines[len(lines)-1]
		if !strings.HasPrefix(who, fmt.Sprint(uid)+".") {
			t.Errorf("the plugin was %s, want the pilot's user, %d", who, uid)
		}
	}
	want := "e2emany://h/one by " + who + "\ne2eone://h/two\ne2emany://h/three by " + who + "\n" + owner + "\n" + owner + "\n"
	if got != want {
		t.Errorf("the job found\n%s\nwant\n%s", got, want)
	}
	run, err := job.Run(soon(t, patience), 1)
	if err != nil {
		t.Fatal(err)
	}
	if line := "FILETRANSFER: plugin " + many + " exit=0 stdout: to be logged"; !run.Has(line) {
		t.Errorf("the starter's log lacks %q", line)
	}
}

// keptPlugin notes each time that it is asked about itself.
const keptPlugin = `#!/bin/sh
if [ "$1" = -classad ]; then echo asked >>` + askedFile + `; echo 'SupportedMethods = "e2ekept"'; exit; fi
echo "$1" >"$2"
`

const askedFile = sitePrograms + "/asked"

// TestPluginAnswersAreKept: the first job with a URL makes the starter ask a plugin about itself. Later jobs
// do so only if the plugin's file has changed, or if the kept answer could be somebody else's.
func TestPluginAnswersAreKept(t *testing.T) {
	oursOnly(t)
	inPilot := func(command string) string {
		t.Helper()
		out, err := pool.EP(t.Context(), side, "sh", "-ec", command)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	path := siteProgram(t, "kept_plugin.sh", keptPlugin)
	inPilot("touch " + askedFile + "; chmod 666 " + askedFile)
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), side, "rm", "-f", askedFile); err != nil {
			t.Error(err)
		}
	})
	configure(t, "FILETRANSFER_PLUGINS = "+path)
	for _, step := range []struct {
		what, command string
		asked         int
	}{
		{"a plugin that nobody knows", "", 1},
		{"another job", "", 1},
		{"another time of modification", "touch " + path, 2},
		{"another file of the same size and time", "cp -p " + path + " " + path + ".new; mv " + path + ".new " + path, 3},
		{"answers in a file of the job's user", fmt.Sprintf("chown %d /run/podstarter/private/transfer-plugins.json", pool.PayloadUID(side)), 4},
	} {
		if step.command != "" {
			inPilot(step.command)
		}
		s := script("#!/bin/sh\ncat one\n", "transfer_input_files = e2ekept://h/one")
		s.Name = "plugin-kept"
		s.Requirements = "TARGET.HasFileTransferPluginMethods =!= undefined"
		job := submit(t, s)[0]
		mustExit(t, job, 0)
		if got := output(t, job, "out"); got != "e2ekept://h/one\n" {
			t.Errorf("%s: the job found %q", step.what, got)
		}
		if asked := strings.Count(inPilot("cat "+askedFile), "asked"); asked != step.asked {
			t.Errorf("%s: the plugin was asked about itself %d times by now, want %d", step.what, asked, step.asked)
		}
	}
}

// spyPlugin is a hostile job's plugin: it looks for the pilot container's secrets, and leaves a process
// behind.
const spyPlugin = spyLooks + `setsid sh -c 'printf e2eleft >/proc/$$/comm; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
while ! grep -qs e2eleft /proc/[0-9]*/comm; do sleep 0.05; done
echo '[ TransferSuccess = true ]' >"$out"
`

const spyLooks = `while [ $# -gt 0 ]; do case $1 in -infile) in=$2; shift;; -outfile) out=$2; shift;; esac; shift; done
name=$(grep -o 'LocalFileName = "[^"]*"' "$in" | cut -d'"' -f2)
{
echo is $(id -u) $(id -g) $(id -G)
grep -e ^NoNewPrivs -e ^CapEff -e ^CapPrm -e ^CapInh -e ^Groups /proc/self/status
for file in /var/run/secrets/kubernetes.io/serviceaccount/token /etc/podstarter/credentials/* /proc/1/environ /etc/condor/passwords.d/POOL /etc/shadow; do
	(cat "$file" >/dev/null) 2>/dev/null && echo "can read $file"
done
for path in /run/podstarter/control /run/podstarter/private /etc/condor/passwords.d /proc/1/root/ /proc/1/fd /proc/$PPID/fd /proc/$PPID/root/; do
	ls "$path" >/dev/null 2>&1 && echo "can list $path"
done
for link in /proc/1/fd/0 /proc/$PPID/fd/0 /proc/1/exe /proc/$PPID/cwd; do readlink "$link" >/dev/null 2>&1 && echo "can follow $link"; done
for pid in 1 $PPID; do kill -CONT $pid 2>/dev/null && echo "can signal $pid"; done
for path in /mark /usr/local/mark /run/podstarter/bin/mark /run/podstarter/private/mark /run/podstarter/private/transfer-plugins.json /etc/condor/mark /var/log/condor/mark $(dirname "$_CONDOR_JOB_AD")/../mark; do
	(: >"$path") 2>/dev/null && echo "can write $path"
done
echo has open $(ls /proc/self/fd)
env | grep -i -e CONDOR_INHERIT -e PRIVATE_INHERIT -e TOKEN -e KUBERNETES -e PASSWORD | sed 's/^/knows /'
} >"$name" 2>/dev/null
`

// TestModePluginOfTheJob: a program that the job brings and that runs in the pilot container has no rights
// there. Where it would have the pilot's rights, no such job comes.
func TestModePluginOfTheJob(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		says, err := pool.AP(t.Context(), "condor_status", "-constraint", "HasPodStarter =?= true", "-af", "HasJobTransferPlugins", "HasDisableUserTransferPlugins")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(says) {
			if strings.TrimSpace(line) != "undefined true" {
				t.Errorf("the slot accepts plugins of jobs, which would have the pilot's rights: %s", line)
			}
		}
		return
	}
	s := script("#!/bin/sh\ncat seen\ngrep -s e2eleft /proc/[0-9]*/comm | sed 's/^/can find /'\n", "transfer_input_files = spy://h/seen", "transfer_plugins = spy=spy.sh")
	s.Name = "plugin-of-the-job"
	s.Files = append(s.Files, harness.File{Name: "spy.sh", Mode: 0o755, Content: []byte("#!/bin/sh\n" + spyPlugin)})
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	seen := strings.Split(strings.TrimSpace(output(t, job, "out")), "\n")
	t.Logf("in mode %s: %q", pool.Mode, seen)
	for _, line := range seen {
		if strings.HasPrefix(line, "can ") || strings.HasPrefix(line, "knows ") {
			t.Errorf("the job's plugin %s", line)
		}
	}
	uid := userOf(t, job)
	for _, want := range []string{
		fmt.Sprintf("is %d 65533 65533", uid), "Groups:\t ", "NoNewPrivs:\t1", "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "has open 0 1 2 3", // the last is what it looks with
	} {
		if !slices.Contains(seen, want) {
			t.Errorf("the plugin does not say %q", want)
		}
	}
	// Its leftovers were gone before the job began, which sees them in the modes where it sees the pilot at
	// all.
	left := func(p harness.Process) bool { return p.Comm == "e2eleft" && p.UID == uid }
	if err := harness.WaitNone(soon(t, patience), left); err != nil {
		t.Error(err)
	}
}
