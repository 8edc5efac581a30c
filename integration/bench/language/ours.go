package language

import (
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
)

// timed measures work that returns a result on which all libraries must agree.
func timed(kind string, number int, work func() int64) run {
	began := time.Now()
	agreed := work()
	return run{kind: kind, number: number, took: time.Since(began), agreed: agreed}
}

// ours does the work with our library, so many times.
func ours(machines, jobs string, rounds int) (runs []run, err error) {
	texts := strings.SplitAfter(strings.TrimSpace(machines), "\n\n")
	wanted, err := readAll(strings.SplitAfter(strings.TrimSpace(jobs), "\n\n"))
	if err != nil {
		return nil, fmt.Errorf("reading the ads of jobs: %w", err)
	}
	for range rounds {
		var ads []*classads.Ad
		runs = append(runs, timed(parse, len(texts), func() int64 {
			ads, err = readAll(texts)
			return attributes(ads)
		}))
		if err != nil {
			return nil, fmt.Errorf("reading the ads of machines: %w", err)
		}
		runs = append(runs,
			timed(print, len(ads), func() (bytes int64) {
				var text []byte
				for _, ad := range ads {
					text = ad.AppendOld(text[:0])
					bytes += int64(len(text))
				}
				return bytes
			}),
			timed(match, len(ads)*len(wanted), func() (matches int64) {
				for _, job := range wanted {
					for _, machine := range ads {
						if classads.Matches(job, machine, classads.Env{}) {
							matches++
						}
					}
				}
				return matches
			}))
	}
	return runs, nil
}

func readAll(texts []string) ([]*classads.Ad, error) {
	ads := make([]*classads.Ad, len(texts))
	for i, text := range texts {
		ad, err := classads.ParseOld(text)
		if err != nil {
			return nil, err
		}
		ads[i] = ad
	}
	return ads, nil
}

func attributes(ads []*classads.Ad) (n int64) {
	for _, ad := range ads {
		n += int64(ad.Len())
	}
	return n
}
