package job

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"podstarter/classads"
)

// Universe is the kind of a job; the numbers are those of
// condor_includes/condor_universe.h.
type Universe int

// The universes that a starter gets. Docker and container jobs are vanilla jobs
// with additional attributes.
const (
	Vanilla  Universe = 5
	MPI      Universe = 8
	Java     Universe = 10
	Parallel Universe = 11
	Local    Universe = 12
	VM       Universe = 13
)

var universeNames = [...]string{
	"", "STANDARD", "PIPE", "LINDA", "PVM", "VANILLA", "PVMD", "SCHEDULER", "MPI", "GRID", "JAVA", "PARALLEL", "LOCAL", "VM",
}

const unknownUniverse = "UNKNOWN"

// String returns HTCondor's name of the universe
// (condor_utils/condor_universe.cpp:CondorUniverseName).
func (u Universe) String() string {
	if u < 1 || int(u) >= len(universeNames) {
		return unknownUniverse
	}
	return universeNames[u]
}

// Info is what every phase needs to know about a job.
type Info struct {
	Cluster, Proc int
	Universe      Universe
	Cmd           string // as submitted
	Iwd           string // as submitted
	RemoteIwd     string // initial directory instead of Iwd, "" if not given
	FileTransfer  bool
	User          string // user@domain, who may look into the job
	Owner         string // OsUser, else Owner
	GlobalID      string
	// Lease is how long the job may run without its shadow, counted from the last
	// call; 0 if the ad has no such attribute.
	Lease         time.Duration
	ShadowAddress string
	ShadowVersion string // "" means unknown; CondorVersion is the submitter's
	Node          *Node  // of a job of the parallel universe; nil for others
}

// ID returns "cluster.proc".
func (i Info) ID() string { return fmt.Sprintf("%d.%d", i.Cluster, i.Proc) }

// Read takes the job's identity and the way to run it from its ad, after the
// startd's overlay was merged into it
// (condor_starter.V6.1/jic_shadow.cpp:JICShadow::initJobInfo, initFileTransfer).
// The filesystem domain is the machine's. The error lists everything that is
// missing.
func Read(ad *classads.Ad, filesystemDomain string) (Info, error) {
	var problems *multierror.Error
	need := func(err error) {
		if err != nil {
			problems = multierror.Append(problems, fmt.Errorf("the job's ad: %w", err))
		}
	}
	number := func(name string, least int64) int {
		n, err := ad.GetInt(name)
		if err == nil && (n < least || n > math.MaxInt32) {
			err = fmt.Errorf("attribute %s: %d is out of range", name, n)
		}
		need(err)
		return int(n)
	}
	text := func(name string) string {
		s, err := ad.GetString(name)
		need(err)
		return s
	}
	i := Info{
		Cluster:       number(attrClusterID, 0),
		Proc:          number(attrProcID, math.MinInt32), // below 0 for what is of the cluster, such as its common files
		Universe:      Universe(ad.IntOr("JobUniverse", int64(Vanilla))),
		Cmd:           text(attrCmd),
		Iwd:           text(attrIwd),
		RemoteIwd:     ad.StringOr("RemoteIwd", ""),
		User:          ad.StringOr("User", ""),
		Owner:         ad.StringOr("OsUser", ad.StringOr("Owner", "")),
		GlobalID:      ad.StringOr("GlobalJobId", ""),
		ShadowAddress: ad.StringOr("ShadowIpAddr", ad.StringOr("MyAddress", "")),
		ShadowVersion: ad.StringOr("ShadowVersion", ""),
	}
	if i.Universe < 1 {
		i.Universe = Vanilla
	}
	const maxLease = int64(math.MaxInt64 / time.Second)
	i.Lease = time.Duration(max(0, min(ad.IntOr("JobLeaseDuration", -1), maxLease))) * time.Second
	var err error
	i.FileTransfer, err = transfersFiles(ad, filesystemDomain)
	need(err)
	if i.Universe == Parallel && i.Proc >= 0 {
		i.Node, err = nodeOf(ad)
		need(err)
	}
	return i, problems.ErrorOrNil()
}

// transfersFiles decides whether files are transferred at all. The words come
// from condor_utils/enum_utils.cpp:ShouldTransferFilesTranslation.
func transfersFiles(ad *classads.Ad, filesystemDomain string) (bool, error) {
	word, err := ad.GetString("ShouldTransferFiles")
	if err != nil {
		return false, err
	}
	switch strings.ToUpper(word) {
	case "YES", "TRUE", "ALWAYS":
		return true, nil
	case "NO", "FALSE", "NEVER":
		return false, nil
	case "IF_NEEDED", "AUTO":
		domain, err := ad.GetString("FileSystemDomain")
		return err != nil || !strings.EqualFold(domain, filesystemDomain), nil
	}
	return false, fmt.Errorf("attribute ShouldTransferFiles: %s is not YES, NO or IF_NEEDED", excerpt(word))
}

// Localize writes into the job's ad what the stock starter writes there before
// it drops the ad into the sandbox: the original names under Orig..., the
// sandbox as initial directory, and the names of standard files that are
// transferred (condor_starter.V6.1/jic_shadow.cpp:JICShadow::initJobInfo,
// initWithFileTransfer).
func Localize(ad *classads.Ad, i Info, scratch string) {
	ad.SetString("OrigCmd", i.Cmd)
	ad.SetString("OrigIwd", i.Iwd)
	if !i.FileTransfer {
		return
	}
	// Files that an earlier run spooled are not output of this one.
	ad.Delete("SpooledOutputFiles")
	renameOutputs(ad)
	ad.SetString(attrIwd, scratch)
}
