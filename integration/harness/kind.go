package harness

import "strings"

// Kind is what the results of a job may depend on in a pool.
type Kind struct {
	Versions
	Mode          Mode
	Partitionable bool
	OneSlot       bool // no two jobs run at once in one execution point
}

// Kind is the kind of this pool.
func (p *Pool) Kind() Kind { return Kind{p.Versions, p.Mode, p.Partitionable, p.Slots == 1} }

// The words for slots in [Kind.Words].
const (
	Static        = "static"
	Partitionable = "partitionable"
	OneSlot       = "one-slot"
	SeveralSlots  = "several-slots"
)

// Words are the pair of versions, the mode, how there come to be slots, and whether there
// is more than one.
func (k Kind) Words() []string {
	slots := Static
	if k.Partitionable {
		slots = Partitionable
	}
	number := SeveralSlots
	if k.OneSlot {
		number = OneSlot
	}
	return []string{k.Versions.String(), string(k.Mode), slots, number}
}

// Special are the words for what differs from an ordinary pool, apart from versions: none for
// one in shared mode with static slots. A job does not notice how many there are.
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
