package facts

// Account is what a job of the chaos test reports about itself and its
// surroundings, as one line of JSON. The second line of its output is End.
type Account struct {
	Job    string // as its arguments have it
	Image  string // content of /image-name
	Layer  string // upper directory of the root file system: one per container
	UID    int
	Digest string // SHA-256 of its input file, in hex
	// Files are the names in its directory.
	Files []string
	// Others are processes of its user that it did not start.
	Others []string
	// Met are things left by a job before it: files in /tmp, shared memory.
	Met []string
	// Readable are directories of other jobs that it could read.
	Readable []string
}

// End is the last line of output of a job that printed an Account and was not
// stopped.
const End = "end"

// ExitCode is the exit code of a job that printed an Account: it shows that the
// exit code is this job's.
func (a Account) ExitCode() int { return CodeOf(a.Digest) }

// CodeOf is the exit code that goes with a digest: 1 to 100, and thus neither that
// of an easy success nor that of a failed step.
func CodeOf(digest string) int {
	sum := 0
	for _, c := range []byte(digest) {
		sum = (sum*31 + int(c)) % 100
	}
	return sum + 1
}
