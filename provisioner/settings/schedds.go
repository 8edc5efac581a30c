package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"

	"podstarter/provisioner/demand"
)

// Schedds of other pools that are asked at most.
const (
	normalFlocking = 50
	mostFlocking   = 1000
)

// schedd is a name, or a name and a pool.
type schedd struct {
	Name string `json:"name"`
	Pool string `json:"pool"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *schedd) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &s.Name) == nil {
		return nil
	}
	type plain schedd
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(s)); err != nil {
		return fmt.Errorf("schedds: %w; write a name, or {name: NAME, pool: COLLECTOR}", err)
	}
	return nil
}

type flocking struct {
	Disabled bool `json:"disabled"`
	Schedds  int  `json:"schedds"`
}

// schedds reads which schedds are asked.
func (f file) schedds() (named []demand.Source, flocking int, err error) {
	var wrong *multierror.Error
	for _, s := range f.Schedds {
		for _, text := range []string{s.Name, s.Pool} {
			if strings.HasPrefix(text, "-") || len(text) > 256 || strings.ContainsAny(text, " \t\r\n") {
				wrong = multierror.Append(wrong, fmt.Errorf("schedds has %q; it is no name of a schedd or of a collector", text))
			}
		}
		if s.Name == "" {
			wrong = multierror.Append(wrong, fmt.Errorf("schedds has an entry without a name"))
		}
		named = append(named, demand.Source(s))
	}
	n := f.Flocking.Schedds
	if n < 0 || n > mostFlocking {
		wrong = multierror.Append(wrong, fmt.Errorf("flocking.schedds is %d; it must be from 1 to %d", n, mostFlocking))
	}
	if len(f.Schedds) > 0 && (n != 0 || f.Flocking.Disabled) {
		wrong = multierror.Append(wrong, fmt.Errorf("flocking is set beside schedds; only those schedds are asked, so take flocking out"))
	}
	switch {
	case f.Flocking.Disabled || len(f.Schedds) > 0:
		n = 0
	case n == 0:
		n = normalFlocking
	}
	return named, n, wrong.ErrorOrNil()
}
