package settings

import (
	"os"
	"strings"
)

// CommonFiles say how jobs get common input files.
type CommonFiles struct {
	Offered bool // data slots keep some
	Links   bool // as hard links
	Copies  bool // as copies
	Digests bool // what is kept could be changed by jobs, and so is compared with a digest
}

// Values of POD_STARTER_COMMON_FILES.
const (
	commonAuto  = "auto"
	commonCopy  = "copy"
	commonNever = "never"
)

// commonFiles reads our knob and those of HTCondor (staging_directory.cpp). What is offered
// depends on other settings; see offer.
func (r *reader) commonFiles(s *Settings) CommonFiles {
	word := strings.ToLower(r.text(KnobCommonFiles))
	switch word {
	case commonAuto, commonCopy, commonNever:
	default:
		r.bad(KnobCommonFiles, "%q is none of %s, %s, %s", word, commonAuto, commonCopy, commonNever)
	}
	c := CommonFiles{
		Links:  word == commonAuto && !r.bool("FORBID_HARDLINK_MAPPING", false),
		Copies: !r.bool("FORBID_COPY_MAPPING", false),
	}
	c.Offered = word != commonNever && !s.Condor.Silent
	return c
}

// offer withdraws what the place of the sandboxes does not allow. Without root all jobs have the
// starter's user: any of them could change a hard link under the others, and, where they see
// EXECUTE, what is kept there. With a volume of the payload's own, hard links to it are impossible.
func (c *CommonFiles) offer(s *Settings) {
	c.Digests = os.Getuid() != 0
	c.Links = c.Links && !c.Digests && s.ScratchDir == ""
	c.Offered = c.Offered && (c.Links || c.Copies)
}

// Method is how most jobs get them, in HTCondor's words.
func (c CommonFiles) Method() string {
	if c.Links {
		return "Hardlink"
	}
	return "Copy"
}
