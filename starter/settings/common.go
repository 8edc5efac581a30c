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
	c.Offered = word != commonNever && (c.Links || c.Copies) && !s.Condor.Silent
	return c
}

// offer withdraws common files where no user's files are safe from another's: they are kept
// as root, apart from all sandboxes.
func (c *CommonFiles) offer(s *Settings) {
	c.Offered = c.Offered && os.Getuid() == 0 && s.Condor.NestedScratch && s.ScratchDir == ""
}

// Method is how most jobs get them, in HTCondor's words.
func (c CommonFiles) Method() string {
	if c.Links {
		return "Hardlink"
	}
	return "Copy"
}
