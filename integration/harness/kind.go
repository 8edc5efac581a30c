package harness

import "strings"

// Kind is what the results of a job may depend on in a pool.
type Kind struct {
	Versions
	Mode          Mode
	Partitionable bool
}

// Kind is the kind of this pool.
func (p *Pool) Kind() Kind { return Kind{p.Versions, p.Mode, p.Partitionable} }

// The words for slots in [Kind.Words].
const (
	Static        = "static"
	Partitionable = "partitionable"
)

// Words are the pair of versions, the mode, and how there come to be slots.
func (k Kind) Words() []string {
	slots := Static
	if k.Partitionable {
		slots = Partitionable
	}
	return []string{k.Versions.String(), string(k.Mode), slots}
}

// Special are the words for what differs from an ordinary pool, apart from versions: none for
// one in shared mode with static slots.
func (k Kind) Special() string {
	var words []string
	if k.Mode != Shared {
		words = append(words, string(k.Mode))
	}
	if k.Partitionable {
		words = append(words, Partitionable)
	}
	return strings.Join(words, " ")
}

// String is how messages name the kind: the pair of versions, and what is special.
func (k Kind) String() string { return strings.TrimSpace(k.Versions.String() + " " + k.Special()) }
