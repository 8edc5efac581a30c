package credentials_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/starter/credentials"
)

// ofKerberos are the options of a job of this account that wants tickets. Its shadow has
// this credential, if any. The directory is that of the credential monitor, which
// makes tickets in no time if it works.
func ofKerberos(t *testing.T, account, credential string, works bool, knobs map[string]string) (o credentials.Options, dir string) {
	t.Helper()
	dir = t.TempDir()
	all := map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": dir, "UID_DOMAIN": "example.org", "CREDD_POLLING_TIMEOUT": "0"}
	for name, value := range knobs {
		all[name] = value
	}
	o = options(t, "SendCredential = true", all)
	o.Account = account
	var secret []byte
	if credential != "" {
		secret = []byte(credential)
	}
	sh := condortest.NewShadow(t, condortest.ShadowOptions{Kerberos: secret})
	connect(t, sh)
	session, err := sh.TransferSession()
	must(t, err)
	o.Kerberos = func(ctx context.Context, user, domain string) ([]byte, error) {
		if asked := user + "@" + domain; asked != account+"@example.org" {
			return nil, errors.New("the shadow has no user " + asked)
		}
		data, err := shadow.FetchKerberos(ctx, &cedar.Client{}, sh.Address(), session, user, domain)
		if err == nil && works {
			err = os.WriteFile(filepath.Join(dir, user+".cc"), []byte("tickets of "+string(data)), 0o600)
		}
		return data, err
	}
	return o, dir
}

// TestKerberos: the credential goes to the monitor, and the monitor's tickets to the job.
func TestKerberos(t *testing.T) {
	o, dir := ofKerberos(t, "alice", "stored", true, nil)
	must(t, os.WriteFile(filepath.Join(dir, "alice.mark"), nil, 0o600))
	k := newKeeper(t, o)
	must(t, k.Fetch(t.Context()))
	if want := filepath.Join(o.Sandbox.Scratch(), "alice.cc"); k.Tickets() != want {
		t.Errorf("the job is told of %q, want %q", k.Tickets(), want)
	}
	if diff := cmp.Diff([]string{"alice.cc 600 tickets of stored"}, filesIn(t, o.Sandbox.Scratch())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"alice.cc 600 tickets of stored", "alice.cred 600 stored"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestKerberosRenewal: the job gets the tickets that the monitor has renewed, once.
func TestKerberosRenewal(t *testing.T) {
	o, dir := ofKerberos(t, "alice", "", false, map[string]string{"SEC_CREDENTIAL_REFRESH": "60"})
	path := filepath.Join(dir, "alice.cc")
	hourAgo := time.Now().Add(-time.Hour)
	must(t, errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chtimes(path, hourAgo, hourAgo)))
	synctest.Test(t, func(t *testing.T) {
		told := telling{o.Sandbox, make(chan string, 100)}
		o.Sandbox = told
		k := credentials.New(o)
		must(t, k.Fetch(t.Context()))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		must(t, errors.Join(os.WriteFile(path+".new", []byte("renewed"), 0o600), os.Rename(path+".new", path)))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		must(t, os.Remove(path)) // the job keeps what it has
		time.Sleep(10 * time.Minute)
		k.Stop()
		close(told.written)
		var got []string
		for text := range told.written {
			got = append(got, text)
		}
		if diff := cmp.Diff([]string{"old", "renewed"}, got); diff != "" {
			t.Errorf("tickets of the job (-want +got):\n%s", diff)
		}
	})
}

// TestKerberosRenewalFails: tickets that could not be written are tried again, although the
// monitor does not renew them.
func TestKerberosRenewalFails(t *testing.T) {
	o, dir := ofKerberos(t, "alice", "", false, map[string]string{"SEC_CREDENTIAL_REFRESH": "60"})
	path := filepath.Join(dir, "alice.cc")
	hourAgo := time.Now().Add(-time.Hour)
	must(t, errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chtimes(path, hourAgo, hourAgo)))
	synctest.Test(t, func(t *testing.T) {
		told := telling{o.Sandbox, make(chan string, 100)}
		full := &filling{Sandbox: told}
		o.Sandbox = full
		k := credentials.New(o)
		must(t, k.Fetch(t.Context()))
		must(t, errors.Join(os.WriteFile(path+".new", []byte("renewed"), 0o600), os.Rename(path+".new", path)))
		full.full.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		full.full.Store(false)
		time.Sleep(10 * time.Minute)
		k.Stop()
		close(told.written)
		var got []string
		for text := range told.written {
			got = append(got, text)
		}
		if diff := cmp.Diff([]string{"old", "renewed"}, got); diff != "" {
			t.Errorf("tickets of the job (-want +got):\n%s", diff)
		}
	})
}

// filling is a sandbox whose disk may be full.
type filling struct {
	credentials.Sandbox
	full atomic.Bool
}

func (f *filling) WriteFile(name string, data []byte, mode fs.FileMode) error {
	if f.full.Load() {
		return syscall.ENOSPC
	}
	return f.Sandbox.WriteFile(name, data, mode)
}

// TestKerberosWakes: the monitor is woken and makes tickets, for which the job waits.
func TestKerberosWakes(t *testing.T) {
	o, dir := ofKerberos(t, "alice", "stored", false, map[string]string{"CREDD_POLLING_TIMEOUT": "60"})
	must(t, os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600))
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGHUP)
	defer signal.Stop(woken)
	made := make(chan error, 1)
	go func() {
		<-woken
		// Whole at once, as a monitor makes it.
		ready := filepath.Join(dir, "alice.new")
		made <- errors.Join(os.WriteFile(ready, []byte("tickets"), 0o600), os.Rename(ready, filepath.Join(dir, "alice.cc")))
	}()
	must(t, newKeeper(t, o).Fetch(t.Context()))
	must(t, <-made)
	if diff := cmp.Diff([]string{"alice.cc 600 tickets"}, filesIn(t, o.Sandbox.Scratch())); diff != "" {
		t.Error(diff)
	}
}

// TestKerberosWakesNobodyElse: what is no process id of a monitor is not signalled; to
// kill(2), 0 is a whole process group. The test has one of its own, so that a mistake
// hits nobody else.
func TestKerberosWakesNobodyElse(t *testing.T) {
	if os.Getenv("OWN_PROCESS_GROUP") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestKerberosWakesNobodyElse$")
		cmd.Env = append(os.Environ(), "OWN_PROCESS_GROUP=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	for _, pid := range []string{"0", "monitor", ""} {
		o, dir := ofKerberos(t, "alice", "stored", false, nil)
		must(t, os.WriteFile(filepath.Join(dir, "pid"), []byte(pid), 0o600))
		if err := newKeeper(t, o).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "made no Kerberos tickets") {
			t.Errorf("%q: %v", pid, err)
		}
		must(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1)) // comes after the other
		if sig := <-signals; sig != syscall.SIGUSR1 {
			t.Errorf("%q: a process group was signalled", pid)
			<-signals
		}
	}
}

// TestKerberosTicketsThatAreThere spare the shadow, unless they are older than the site
// wants them.
func TestKerberosTicketsThatAreThere(t *testing.T) {
	for name, tt := range map[string]struct{ interval, want string }{
		"by default":      {"", "old"},
		"fresh":           {"36000", "old"},
		"too old":         {"60", "tickets of stored"},
		"always new ones": {"0", "tickets of stored"},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir := ofKerberos(t, "alice", "stored", true, map[string]string{"SEC_CREDENTIAL_REFRESH_INTERVAL": tt.interval})
			path := filepath.Join(dir, "alice.cc")
			hourAgo := time.Now().Add(-time.Hour)
			must(t, errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chtimes(path, hourAgo, hourAgo)))
			mark := filepath.Join(dir, "alice.mark")
			must(t, os.WriteFile(mark, nil, 0o600))
			must(t, newKeeper(t, o).Fetch(t.Context()))
			if diff := cmp.Diff([]string{"alice.cc 600 " + tt.want}, filesIn(t, o.Sandbox.Scratch())); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the monitor may delete the files of an account that has a job")
			}
		})
	}
}

// TestKerberosOfAnAccount: the names of all files are the account's, whoever owns the job.
func TestKerberosOfAnAccount(t *testing.T) {
	o, dir := ofKerberos(t, "slot1", "stored", true, nil)
	o.Info = job.Info{Owner: "alice", User: "alice@example.org"}
	must(t, os.WriteFile(filepath.Join(dir, "alice.cc"), []byte("alice's"), 0o600))
	must(t, newKeeper(t, o).Fetch(t.Context()))
	if diff := cmp.Diff([]string{"slot1.cc 600 tickets of stored"}, filesIn(t, o.Sandbox.Scratch())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"alice.cc 600 alice's", "slot1.cc 600 tickets of stored", "slot1.cred 600 stored"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestKerberosThatCannotBe gives the job back and says what is wrong.
func TestKerberosThatCannotBe(t *testing.T) {
	for name, tt := range map[string]struct {
		credential, account string
		knobs               map[string]string
		damage              func(dir string) error
		want                string
	}{
		"no directory":              {"stored", "alice", map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": ""}, nil, "SEC_CREDENTIAL_DIRECTORY_KRB is not defined"},
		"a directory that is gone":  {"stored", "alice", nil, os.RemoveAll, "store a Kerberos credential"},
		"nothing stored":            {"", "alice", nil, nil, "condor_store_cred add-krb"},
		"no monitor":                {"stored", "alice", nil, nil, "made no Kerberos tickets"},
		"a name that leads astray":  {"stored", "../alice", nil, nil, "cannot be the name of a file"},
		"a hidden name":             {"stored", ".alice", nil, nil, "cannot be the name of a file"},
		"a name with a domain":      {"stored", "alice@b", nil, nil, "cannot be the name of a file"},
		"root":                      {"stored", "root", nil, nil, "cannot be the name of a file"},
		"no name":                   {"stored", "", nil, nil, "cannot be the name of a file"},
		"tickets of 16 MiB and one": {"stored", "alice", nil, func(dir string) error { return sized(dir, 16<<20+1) }, "at most 16777216 are taken"},
		"a directory of tickets":    {"stored", "alice", nil, func(dir string) error { return os.Mkdir(filepath.Join(dir, "alice.cc"), 0o700) }, "read the user's Kerberos tickets"},
	} {
		t.Run(name, func(t *testing.T) {
			o, dir := ofKerberos(t, "alice", tt.credential, false, tt.knobs)
			o.Account = tt.account
			if tt.damage != nil {
				must(t, tt.damage(dir))
			}
			k := newKeeper(t, o)
			err := k.Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want one about %q", err, tt.want)
			}
			if f := (*job.Failure)(nil); !errors.As(err, &f) || f.Code != shadow.VacateStarterError {
				t.Errorf("the error %v does not give the job back", err)
			}
			if k.Tickets() != "" {
				t.Errorf("the job is told of %q", k.Tickets())
			}
		})
	}
}

// sized makes tickets of so many bytes.
func sized(dir string, bytes int64) error {
	path := filepath.Join(dir, "alice.cc")
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, bytes))
}
