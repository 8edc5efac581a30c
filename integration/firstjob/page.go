package firstjob

import (
	"fmt"
	"regexp"
	"strings"
)

// Where the page runs commands: the word behind "sh" at the beginning of a block.
const (
	here           = ""                // where the administrator has kubectl and the folder deploy
	names          = "names"           // the same, with values to be changed
	centralManager = "central-manager" // of the pool
	accessPoint    = "access-point"    // of the pool, as a user
)

// block is a list of commands.
type block struct{ where, text string }

// blocks are those of a page, in its order.
func blocks(page string) ([]block, error) {
	var found []block
	open := false
	for number, line := range strings.Split(page, "\n") {
		info, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open:
			open = false
		case isFence:
			language, where, _ := strings.Cut(info, " ")
			if language != "sh" {
				return nil, fmt.Errorf("line %d: a block of %q; all should be commands", number+1, language)
			}
			found, open = append(found, block{where: where}), true
		case open:
			last := &found[len(found)-1]
			last.text += line + "\n"
		}
	}
	if open {
		return nil, fmt.Errorf("the last block has no end")
	}
	return found, nil
}

var assignment = regexp.MustCompile(`(?m)^([A-Z_]+)=(.*)$`)

// filledIn gives the names of a block their values, and accepts neither a name without a value nor the reverse.
func filledIn(text string, values map[string]string) (string, error) {
	used := map[string]bool{}
	var missing []string
	out := assignment.ReplaceAllStringFunc(text, func(line string) string {
		name := assignment.FindStringSubmatch(line)[1]
		value, ok := values[name]
		if !ok {
			missing = append(missing, name)
		}
		used[name] = true
		return name + "='" + value + "'"
	})
	for name := range values {
		if !used[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("page and test do not agree on the names %s", strings.Join(missing, ", "))
	}
	return out, nil
}
