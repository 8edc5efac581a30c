package filetransfer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"podstarter/classads"
)

// stats are what TransferStats tells the shadow, which adds them to the job's
// TransferInputStats or TransferOutputStats (UpdateTransferStatsTotals).
type stats struct {
	files     int   // items finished, of any kind
	bytes     int64 // of items by CEDAR
	cedar     int   // items by CEDAR that count
	container time.Duration
	image     bool // the container image was among the items
	met       bool // the shadow was reached
	spooled   []string

	plugins  []*classads.Ad // results for the shadow
	told     int            // bytes of them
	untold   int            // results for which there was no room
	byMethod map[string]*methodStats
	// unnamed is the size, in bytes, of files that a plugin stored without naming a
	// protocol: the stock curl_plugin names none for a URL with a token.
	unnamed int64
}

// methodStats is what plugins moved by one protocol.
type methodStats struct {
	files, bytes int64
	sized        bool
}

// mostTold bounds the plugins' results that the shadow gets, in bytes: enough for some
// 30,000 files with a few hundred bytes each. A job can bring plugins that report much
// more.
const mostTold = 16 << 20

// mostMethods bounds the protocols that are counted; plugins name them.
const mostMethods = 32

// ran counts a run of a plugin (AggregateThisTransferStats).
func (s *stats) ran(run *PluginRun) {
	var line []byte
	for _, ad := range run.Results {
		size := 0
		for name, e := range ad.All() {
			line = classads.AppendOldLine(line[:0], name, e)
			size += len(line)
		}
		if s.told+size > mostTold {
			s.untold++
			continue
		}
		s.told += size
		s.plugins = append(s.plugins, ad)
	}
	for _, r := range run.Reports {
		if r.Protocol == "" {
			continue
		}
		m := s.byMethod[r.Protocol]
		if m == nil {
			if len(s.byMethod) == mostMethods {
				continue
			}
			if s.byMethod == nil {
				s.byMethod = map[string]*methodStats{}
			}
			m = &methodStats{}
			s.byMethod[r.Protocol] = m
		}
		m.files++
		if r.Sized {
			m.sized = true
			m.bytes = min(m.bytes+r.Bytes, 1<<62-1)
		}
	}
}

// stored counts a run of a plugin that stored files. Stored bytes also count without a
// protocol, fetched ones do not (InvokeMultiUploadPlugin).
func (s *stats) stored(run *PluginRun) {
	s.ran(run)
	for _, r := range run.Reports {
		if r.Protocol == "" && r.Sized {
			s.unnamed = min(s.unnamed+r.Bytes, 1<<62-1)
		}
	}
}

// moved is the size of all that plugins moved, in bytes.
func (s *stats) moved() int64 {
	n := s.unnamed
	for _, m := range s.byMethod {
		n = min(n+m.bytes, 1<<62-1)
	}
	return n
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
	for _, name := range slices.Sorted(maps.Keys(s.byMethod)) {
		m := s.byMethod[name]
		ad.SetInt(name+"FilesCount", m.files)
		if m.sized {
			ad.SetInt(name+"SizeBytes", m.bytes)
			protocols = append(protocols, name)
		}
	}
	ad.SetString("Protocols", strings.Join(protocols, ","))
	return ad
}

func (s *stats) result(began time.Time) *Result {
	return &Result{Bytes: s.bytes + s.moved(), Plugins: s.plugins, Files: s.files, Stats: s.ad(), Took: time.Since(began), Met: s.met}
}
