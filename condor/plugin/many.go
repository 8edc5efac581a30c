package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"podstarter/condor/job"
)

// many runs a plugin from protocol 2 on (InvokeMultipleFileTransferPlugin).
func (r *Runner) many(ctx context.Context, p *Plugin, class Class, files []File, proxy string) (*Result, error) {
	res := &Result{Plugin: p, Status: Failed}
	if p.Refused {
		res.code = SubcodeNotAllowed
		res.errors.push("user-supplied plugin %s not allowed", p.Path)
		res.fail()
		return res, nil
	}
	in, out := "."+p.Base()+".in", "."+p.Base()+".out"
	defer r.remove(in, out)
	for name, text := range map[string][]byte{in: p.input(r.Job, files, r.PlainData), out: []byte(blank)} {
		if err := r.Files.WriteFile(name, text, 0o600); err != nil {
			res.errors.push("|Error: cannot write %s for file transfer plugin %s: %v", filepath.Join(r.Scratch, name), p.Path, err)
			res.fail()
			if e := syscall.Errno(0); errors.As(err, &e) {
				res.Failure.Subcode = int(e)
			}
			return res, nil
		}
	}
	args := []string{"-infile", filepath.Join(r.Scratch, in), "-outfile", filepath.Join(r.Scratch, out)}
	if class.upload() {
		args = append(args, "-upload")
	}
	end, err := r.execute(ctx, res, Program{
		Path: r.program(p), Args: args, Env: r.environment(p, proxy), Dir: r.Scratch,
		Limit: r.lifetime(), Combined: r.KeepErrors, FromJob: p.FromJob,
	})
	if err != nil || res.Status == NotExecuted {
		return res, err
	}
	r.logOutput(p, res, end)
	text, err := r.Files.ReadFile(out, outputLimit(len(files)))
	if err != nil {
		r.Log.Warn("A plugin's report cannot be read", "plugin", p.Path, "error", err)
	}
	res.take(text, class, files, err, filepath.Join(r.Scratch, out), r.lifetime())
	return res, nil
}

// take reads what a plugin has reported and judges the run.
func (res *Result) take(text []byte, class Class, files []File, unread error, out string, lifetime time.Duration) {
	res.Ads = append(res.Ads, res.invocation(class, schemes(files)))
	if res.Status == TimedOut {
		res.code = subcodeTimedOut
	}
	path, code := res.Plugin.Path, res.code
	for _, ad := range ParseReports(text, 2*len(files)+16) {
		if res.signal != 0 {
			ad.Delete("PluginExitCode")
			ad.SetInt("PluginExitSignal", int64(res.signal))
		} else {
			ad.Delete("PluginExitSignal")
			ad.SetInt("PluginExitCode", int64(code))
		}
		report := newReport(ad)
		res.Reports = append(res.Reports, report)
		res.Ads = append(res.Ads, filterReport(ad))
		said := report.Error
		switch {
		case !report.Judged:
			res.errors.push("non-zero exit (%d) from %s. |Error: File transfer plugin %s exited without producing a TransferSuccess result  (%s)|",
				code, path, path, Safe(report.URL))
		case !report.Success:
			if said == "" {
				said = "File transfer plugin " + path + " exited unexpectedly without producing an error message "
			}
			res.errors.push("non-zero exit (%d) from %s. |Error: %s ( URL file = %s )|", code, path, said, Safe(report.URL))
		}
	}
	switch {
	case unread != nil:
		res.errors.push("|Error: file transfer plugin %s exited with code %d, unable to open output file %s", path, code, out)
		res.worsen()
	case len(res.Reports) == 0:
		how, number := "exit code", code
		if res.signal != 0 {
			how, number = "signal", res.signal
		}
		res.errors.push("|Error: file transfer plugin %s exited (%s %d), no valid classads in output file %s", path, how, number, out)
		// Input may come another time. Output is not tried again: the job has run, and its
		// plugin would be as silent after the next run.
		if res.unsaid = class.upload(); !res.unsaid {
			res.code = SubcodeNothingSaid
		}
		res.worsen()
	}
	switch {
	case res.Status == Success:
		return
	case res.Status == TimedOut:
		res.errors.push("File transfer plugin %s timed out after %d seconds.", path, int(lifetime/time.Second))
	case res.errors.empty():
		res.Unexplained = true
		res.errors.push("File transfer plugin %s failed unexpectedly with exit code %d, did not report a TransferError message.", path, code)
	}
	res.fail()
}

// worsen turns a success into a failure.
func (res *Result) worsen() {
	if res.Status == Success {
		res.Status = Failed
	}
}

// program returns the path of a plugin's file: that of a job's plugin is in the
// sandbox, wherever it was at the access point.
func (r *Runner) program(p *Plugin) string {
	if p.FromJob {
		return filepath.Join(r.Scratch, p.Base())
	}
	return p.Path
}

func (r *Runner) lifetime() time.Duration {
	if r.Lifetime <= 0 {
		return DefaultLifetime
	}
	return r.Lifetime
}

// remove removes files of a run from the sandbox. Stock leaves them there after a
// failure.
func (r *Runner) remove(names ...string) {
	for _, name := range names {
		if err := r.Files.RemoveFile(name); err != nil && !errors.Is(err, syscall.ENOENT) {
			r.Log.Warn("A plugin's file cannot be removed from the sandbox", "file", name, "error", err)
		}
	}
}

// Bounds for tries to execute a plugin: a process just forked may have its file open
// for writing, or the machine may be short of resources for a moment.
const (
	executeTries = 4
	executePause = 100 * time.Millisecond
)

// execute runs a plugin's program and records how it ended. If it was not executed,
// res says so, too.
func (r *Runner) execute(ctx context.Context, res *Result, program Program) (Outcome, error) {
	path := res.Plugin.Path
	r.Log.Info("FILETRANSFER: invoking: " + program.Path + " " + strings.Join(safeAll(program.Args), " "))
	var end Outcome
	var err error
	for try := 1; ; try++ {
		if end, err = r.Exec(ctx, program); err == nil {
			break
		}
		if ctx.Err() != nil {
			return end, context.Cause(ctx)
		}
		if try < executeTries && passing(err) {
			timer := time.NewTimer(time.Duration(try) * executePause)
			select {
			case <-timer.C:
				continue
			case <-ctx.Done():
				timer.Stop()
				return end, context.Cause(ctx)
			}
		}
		res.Status = NotExecuted
		why := err.Error()
		if e := syscall.Errno(0); errors.As(err, &e) {
			why = job.Strerror(e)
		}
		r.Log.Warn("FILETRANSFER: Failed to execute "+path, "error", err)
		res.errors.push("FILETRANSFER: Failed to execute %s: %s", path, why)
		res.fail()
		return end, nil
	}
	res.Took = max(end.Took, 1)
	r.logEnd(res.Plugin, end)
	switch {
	case end.Late:
		res.Status = TimedOut
		if end.Status.Signaled() {
			res.late = int(end.Status.Signal())
		}
	case end.Status.Signaled():
		res.Status, res.signal = Failed, int(end.Status.Signal())
	default:
		if res.code = end.Status.ExitStatus(); res.code == 0 {
			res.Status = Success
		}
	}
	return end, nil
}

// logEnd logs how a plugin's process ended (file_transfer.cpp:InvokeFileTransferPlugin,
// InvokeMultipleFileTransferPlugin).
func (r *Runner) logEnd(p *Plugin, end Outcome) {
	code, signal := 0, 0
	if end.Status.Signaled() {
		signal = int(end.Status.Signal())
	} else {
		code = end.Status.ExitStatus()
	}
	by := min(signal, 1)
	switch {
	case end.Late:
		r.Log.Warn(fmt.Sprintf("FILETRANSFER: plugin %s was killed after running for %d seconds.", p.Path, int64(r.lifetime().Seconds())))
	case p.Multi:
		r.Log.Info(fmt.Sprintf("FILETRANSFER: plugin %s: exit_code %d exit_by_signal: %d exit_signal: %d", p.Path, code, by, signal))
	default:
		r.Log.Info(fmt.Sprintf("FILETRANSFER: plugin %s returned %d exit_by_signal: %d", p.Path, code, by))
	}
}

// passing reports whether an error of execve(2) or fork(2) may be temporary.
func passing(err error) bool {
	return errors.Is(err, syscall.ETXTBSY) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}

func safeAll(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = Safe(a)
	}
	return out
}

// logOutput logs what a plugin wrote, in stock's words
// (file_transfer.cpp:InvokeMultipleFileTransferPlugin).
func (r *Runner) logOutput(p *Plugin, res *Result, end Outcome) {
	const most = 16 << 10
	text, label := end.Tail, "stdout, the last 16 KiB"
	if text == nil {
		text, label = end.Output, "stdout"
	}
	if len(text) == 0 || r.Output == nil {
		return
	}
	if len(text) > most {
		text, label = text[len(text)-most:], "stdout, the last 16 KiB"
	}
	how := fmt.Sprintf("exit=%d", res.code)
	if res.signal != 0 {
		how = fmt.Sprintf("signal=%d", res.signal)
	}
	r.Output(res.Status == Success, fmt.Sprintf("FILETRANSFER: plugin %s %s %s: %s", p.Path, how, label, strings.ToValidUTF8(string(text), "?")))
}
