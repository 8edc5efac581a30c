package payloadrun

import (
	"os"
	"os/user"
	"slices"
	"strconv"
)

// AccountOf finds the name and home of a user id; both are empty for an id
// that the pilot's image does not know, which is the rule for payload users.
func AccountOf(uid int) (name, home string) {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "", ""
	}
	return u.Username, u.HomeDir
}

// groupsOf are the supplementary groups of a payload: those in which the pilot's
// image has its user, and its own group in any case, as initgroups(3) gives them
// to a job of stock. Root's group is never one.
func groupsOf(uid, gid int) []int {
	groups := []int{gid}
	if os.Getuid() != 0 {
		// The pilot's own user: what it may enter is not for jobs.
		return groups
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return groups
	}
	ids, err := u.GroupIds()
	if err != nil {
		return groups
	}
	for _, id := range ids {
		if g, err := strconv.Atoi(id); err == nil && g > 0 && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}
