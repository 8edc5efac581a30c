package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/provisioner/advert"
	"podstarter/provisioner/condortools"
	"podstarter/provisioner/template"
)

// Market is the pool as it is asked for matches of offline ads.
type Market struct {
	*Pool
	Templates []template.Template
}

// Offers returns the offline ads of the provisioner. Those that cannot be read are
// in the error, and the others are returned with it; if nothing is known, nil.
func (m *Market) Offers(ctx context.Context) ([]advert.Offer, error) {
	var offers []advert.Offer
	var bad error
	err := condortools.Run(ctx, func(r io.Reader) error {
		offers, bad = advert.Read(r, m.Prefix, m.Templates)
		return nil
	}, "condor_status", advert.Arguments(m.Collector, m.Prefix)...)
	switch {
	case err != nil:
		return nil, err
	case errors.Is(bad, advert.ErrTooMuch):
		return nil, bad
	}
	return offers, bad
}

// Cycle returns when the last negotiation cycle that has ended began; zero if no
// negotiator says so. Of several negotiators the one that is furthest behind counts.
func (m *Market) Cycle(ctx context.Context) (time.Time, error) {
	var last time.Time
	err := m.ads(ctx, []string{"-negotiator", "-attributes", "Name,LastNegotiationCycleTime0"}, func(ad *classads.Ad) error {
		at := time.Unix(ad.IntOr("LastNegotiationCycleTime0", 0), 0).UTC()
		if at.Unix() > 0 && (last.IsZero() || at.Before(last)) {
			last = at
		}
		return nil
	})
	return last, err
}

// Advertise sends ads to the collector.
func (m *Market) Advertise(ctx context.Context, ads []*classads.Ad) error {
	return m.send(ctx, "UPDATE_STARTD_AD", ads)
}

// Invalidate sends ads that take others back.
func (m *Market) Invalidate(ctx context.Context, ads []*classads.Ad) error {
	return m.send(ctx, "INVALIDATE_STARTD_ADS", ads)
}

func (m *Market) send(ctx context.Context, command string, ads []*classads.Ad) error {
	if len(ads) == 0 {
		return nil
	}
	var text strings.Builder
	for _, ad := range ads {
		text.WriteString(ad.FormatOld())
		text.WriteString("\n")
	}
	args := []string{"-multiple", command}
	if m.Collector != "" {
		args = append([]string{"-pool", m.Collector}, args...)
	}
	err := condortools.RunWith(ctx, strings.NewReader(text.String()), func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}, "condor_advertise", args...)
	if err != nil {
		return fmt.Errorf("sending %d offline ads to the collector, which needs the right ADVERTISE_STARTD: %w", len(ads), err)
	}
	return nil
}
