package localjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/localexec"
	"podstarter/sandbox"
	"podstarter/starter/payloadrun"
)

// owner is who the job runs as.
type owner struct {
	name    string
	account *localexec.Account // nil: as this process
}

// ownerOf finds the owner's account: the schedd passes on what it knows of it, as of others, in USERID_MAP
// (condor_utils/set_user_priv_from_ad.cpp, passwd_cache.unix.cpp:loadConfig). A process without root has one user only.
func ownerOf(ctx context.Context, ad *classads.Ad, knobs *config.Config) (owner, error) {
	if os.Getuid() != 0 {
		return owner{}, nil
	}
	name, _, _ := strings.Cut(ad.StringOr("OsUser", ad.StringOr("User", "")), "@")
	if name == "" {
		return owner{}, errors.New("the job's ad has neither OsUser nor User, so its owner's account is not known")
	}
	a, err := mapped(name, knobs.String("USERID_MAP", ""))
	if err == nil && a == nil {
		a, err = lookedUp(ctx, name)
	}
	switch {
	case err != nil:
		return owner{}, fmt.Errorf("find the account of the job's owner %.80q: %w", name, err)
	case a.UID <= 0 || a.GID <= 0:
		return owner{}, fmt.Errorf("the job's owner %.80q is user %d, group %d; no job runs as root or in its group", name, a.UID, a.GID)
	}
	return owner{name, a}, nil
}

// maxID is the largest user or group of Linux; the number above means "leave it" (setresuid(2)).
const maxID = 1<<32 - 2

// mapped reads "name=uid,gid,group,... name=..."; nil if the name, or its groups, are not there.
func mapped(name, text string) (*localexec.Account, error) {
	for word := range strings.FieldsSeq(text) {
		of, ids, _ := strings.Cut(word, "=")
		if of != name {
			continue
		}
		var numbers []int
		for id := range strings.SplitSeq(ids, ",") {
			if id == "?" { // the groups are not known
				return nil, nil
			}
			n, err := strconv.Atoi(id)
			if err != nil || n < 0 || n > maxID {
				return nil, fmt.Errorf("USERID_MAP has %.80q instead of a number", id)
			}
			numbers = append(numbers, n)
		}
		if len(numbers) < 2 {
			return nil, fmt.Errorf("USERID_MAP has no group for it")
		}
		return &localexec.Account{UID: numbers[0], GID: numbers[1], Groups: numbers[1:]}, nil
	}
	return nil, nil
}

// askTime bounds a question to the machine's own programs, which may ask a directory service.
const askTime = 10 * time.Second

// asked is what a program of the system answers, which knows the accounts that no file has, as of LDAP.
func asked(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.Dir = "/"
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lookedUp is an account as the system knows it.
func lookedUp(ctx context.Context, name string) (*localexec.Account, error) {
	if strings.HasPrefix(name, "-") {
		return nil, errors.New("no account begins with a dash")
	}
	// id(1) takes a number for the user with that number, whose name is another.
	if strings.Trim(strings.TrimLeft(name, "+ \t\n\v\f\r"), "0123456789") == "" {
		return nil, errors.New("a number is no account's name")
	}
	id, err := asked(ctx, "/usr/bin/id", "-u", name)
	if err != nil {
		return nil, err
	}
	var a localexec.Account
	if a.UID, err = strconv.Atoi(id); err != nil {
		return nil, err
	}
	groups, err := asked(ctx, "/usr/bin/id", "-G", name)
	if err != nil {
		return nil, err
	}
	for word := range strings.FieldsSeq(groups) {
		g, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		a.Groups = append(a.Groups, g)
	}
	if len(a.Groups) == 0 {
		return nil, errors.New("it is in no group")
	}
	a.GID = a.Groups[0]
	return &a, nil
}

// home is the name and the home directory of a user, empty if the system knows none.
func home(ctx context.Context, uid int) (name, dir string) {
	if name, dir = payloadrun.AccountOf(uid); name != "" {
		return name, dir
	}
	entry, err := asked(ctx, "/usr/bin/getent", "passwd", strconv.Itoa(uid))
	if err != nil {
		return "", ""
	}
	const fields = 7 // passwd(5)
	if f := strings.Split(entry, ":"); len(f) == fields {
		return f[0], f[5]
	}
	return "", ""
}

// files is the owner as whom files are opened.
func (o owner) files() sandbox.Owner {
	if o.account == nil {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: o.account.UID, GID: o.account.GID, Groups: o.account.Groups}
}

// localize writes into the ad what the stock starter writes there (jic_local.cpp:initJobInfo).
func localize(ad *classads.Ad) error {
	cmd, err := ad.GetString("Cmd")
	if err != nil {
		return fmt.Errorf("the job's ad: %w", err)
	}
	iwd, err := ad.GetString("Iwd")
	if err != nil {
		return fmt.Errorf("the job's ad: %w", err)
	}
	ad.SetString("OrigCmd", cmd)
	ad.SetString("OrigIwd", iwd)
	if !filepath.IsAbs(cmd) {
		ad.SetString("Cmd", iwd+"/"+cmd)
	}
	return nil
}

// infoOf is what the parts of the starter need to know of the job: one that transfers no files.
func infoOf(ad *classads.Ad) (job.Info, error) {
	plain := ad.Clone()
	plain.SetString("ShouldTransferFiles", "NO")
	plain.Delete("RemoteIwd") // of no meaning for a job that runs where it was submitted
	return job.Read(plain, "")
}
