package sandbox

import (
	"strings"
	"time"

	"podstarter/classads"
)

// stats are what TransferStats tells the shadow, which adds them to the job's
// TransferInputStats or TransferOutputStats (UpdateTransferStatsTotals).
type stats struct {
	files     int   // items finished, whatever they were
	bytes     int64 // of items by CEDAR
	cedar     int   // items by CEDAR that count
	container time.Duration
	image     bool // the container image was among the items
	spooled   []string
}

func (s *stats) ad() *classads.Ad {
	ad := classads.NewAd()
	var protocols []string
	if s.cedar > 0 {
		ad.SetInt("CedarFilesCount", int64(s.cedar))
	}
	if s.image {
		ad.SetInt("ContainerDuration", int64(s.container/time.Second))
	}
	if s.bytes > 0 {
		ad.SetInt("CedarSizeBytes", s.bytes)
		protocols = append(protocols, "cedar")
	}
	ad.SetString("Protocols", strings.Join(protocols, ","))
	return ad
}

func (s *stats) result(began time.Time) *Result {
	return &Result{Bytes: s.bytes, Files: s.files, Stats: s.ad(), Took: time.Since(began)}
}
