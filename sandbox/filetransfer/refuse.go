package filetransfer

import (
	"fmt"
	"syscall"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/sandbox/jobfiles"
)

// listError refuses a job with a list that is too long.
func listError(attribute string, code int) *Error {
	return &Error{Code: code, Subcode: int(syscall.E2BIG), Text: fmt.Sprintf("the job's attribute %s has more than %d entries, which is what this execution point allows; "+
		"name directories in the place of files", attribute, jobfiles.MaxListed)}
}

// refusal says why nothing of a job can be sent, such as a checkpoint whose
// destination is not a URL. It is nil if there is no such reason.
func refusal(j *jobfiles.Files, kind jobfiles.Kind) error {
	switch {
	case j.TooMany != "":
		return listError(j.TooMany, CodeUpload)
	case kind != jobfiles.Checkpoint || j.CheckpointDestination == "":
		return nil
	case jobfiles.URLScheme(j.CheckpointDestination) == "":
		return &Error{Code: CodeUpload, Text: "checkpoint_destination is no URL: " + oneLine(j.CheckpointDestination)}
	case j.GlobalID == "":
		return &Error{Code: CodeUpload, Text: "the job has no GlobalJobId, by which its checkpoints are found again"}
	}
	return nil
}

// inTheClear refuses a connection without a key to a job with files that are to be encrypted. The stock starter finds
// that out at the first of them, and gives no reason (file_transfer.cpp:DoUpload, DoDownload).
func inTheClear(s *cedar.Stream, job *classads.Ad) error {
	if s.Encrypted() {
		return nil
	}
	for _, name := range []string{"EncryptInputFiles", "EncryptOutputFiles"} {
		if job.StringOr(name, "") != "" {
			return fmt.Errorf("the job's %s wants files encrypted, and the connection to the shadow has no key; set SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION = True", name)
		}
	}
	return nil
}
