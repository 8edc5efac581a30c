package demand

import (
	"cmp"
	"maps"
	"slices"
)

// tally counts what each user's groups take of an answer.
type tally struct {
	users         map[string]use
	groups, bytes int
}

type use struct{ groups, bytes int }

func (t *tally) count(owner string, bytes int) {
	if t.users == nil {
		t.users = map[string]use{}
	}
	t.groups++
	t.bytes += bytes
	if owner != "" {
		u := t.users[owner]
		t.users[owner] = use{u.groups + 1, u.bytes + bytes}
	}
}

// maxHeavy is how many users at most are asked for apart.
const maxHeavy = 4

// heavy returns the users who have more than a fifth of the groups or of the bytes.
func (t *tally) heavy() []string {
	part := func(u use) float64 {
		return max(float64(u.groups)/float64(max(t.groups, 1)), float64(u.bytes)/float64(max(t.bytes, 1)))
	}
	names := slices.SortedFunc(maps.Keys(t.users), func(a, b string) int {
		return cmp.Or(cmp.Compare(part(t.users[b]), part(t.users[a])), cmp.Compare(a, b))
	})
	names = slices.DeleteFunc(names, func(name string) bool { return part(t.users[name]) < 0.2 })
	return names[:min(len(names), maxHeavy)]
}
