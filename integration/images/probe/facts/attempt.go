package facts

// Attempt is the result of one attack that the probe tried on its surroundings
// (integration/attacks).
type Attempt struct {
	Attack  string
	Got     []string // what the attacker gained; nothing if all was refused
	Refused []string // what was tried, and how it was answered
}

// FloodFiles is how many files of one flood have plain names.
const FloodFiles = 10_000

// StrangeNames are those of others; each is the content of its file.
var StrangeNames = []string{"new\nline", "\ttab", " ", "-rf", "*", "quote\"", "back\\slash", "\xff\xfe", "per%cent", "comma,comma", "dollar$(HOME)"}

// PluginFlood is what a hostile plugin writes, in bytes.
const PluginFlood = 256 << 20

// Names that the attacks and what they are after have in common.
const (
	Treasure    = "treasure"    // a victim's file, in its sandbox and in /dev/shm
	TreasureKey = 0x70645001    // a victim's System V shared memory
	Leftover    = "leftover"    // what a job leaves in /dev/shm
	LeftoverKey = 0x70645002    // and as System V shared memory
	Keeper      = "keep-secret" // stands among a victim's arguments
	PluginLeft  = "plugin-left" // stands among those of what a plugin has left
	Tried       = "tried"       // a file with what came of a plugin's attacks
	SiteHook    = "site-update" // is what a hook of the site is called in the process table
)
