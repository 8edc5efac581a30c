package settings

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"podstarter/condor/config"
	"podstarter/sandbox"
)

// CondorOwner is the account that HTCondor's own files belong to: CONDOR_IDS
// (uid.gid), else the user "condor", else, without root, whoever we are
// (HTCondor src/condor_utils/uids.cpp:init_condor_ids).
func CondorOwner(cfg *config.Config) (sandbox.Owner, error) {
	if os.Getuid() != 0 {
		return sandbox.Owner{UID: os.Getuid(), GID: os.Getgid()}, nil
	}
	if ids, ok := cfg.Lookup("CONDOR_IDS"); ok && ids != "" {
		uid, gid, ok := strings.Cut(ids, ".")
		u, errU := strconv.Atoi(strings.TrimSpace(uid))
		g, errG := strconv.Atoi(strings.TrimSpace(gid))
		if !ok || errU != nil || errG != nil || u < 0 || g < 0 {
			return sandbox.Owner{}, fmt.Errorf("CONDOR_IDS = %q is not of the form uid.gid, such as 101.102", ids)
		}
		return sandbox.Owner{UID: u, GID: g}, nil
	}
	u, err := user.Lookup("condor")
	if err != nil {
		return sandbox.Owner{}, fmt.Errorf("look up the user condor, who owns HTCondor's files: %w; create it or set CONDOR_IDS", err)
	}
	uid, errU := strconv.Atoi(u.Uid)
	gid, errG := strconv.Atoi(u.Gid)
	if errU != nil || errG != nil {
		return sandbox.Owner{}, fmt.Errorf("the user condor has the ids %q and %q, which are not numbers", u.Uid, u.Gid)
	}
	return sandbox.Owner{UID: uid, GID: gid}, nil
}
