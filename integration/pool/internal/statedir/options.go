package statedir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FeatureGates are those of Kubernetes, as its own options take them: A=true,B=false.
type FeatureGates map[string]bool

// Set implements flag.Value.
func (g *FeatureGates) Set(text string) error {
	*g = nil
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		on, err := strconv.ParseBool(value)
		if !ok || name == "" || err != nil {
			return fmt.Errorf("%q is not GATE=true or GATE=false", part)
		}
		if *g == nil {
			*g = FeatureGates{}
		}
		(*g)[name] = on
	}
	return nil
}

// String implements flag.Value.
func (g FeatureGates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(g)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, g[name]))
	}
	return strings.Join(parts, ",")
}

// Object is a JSON object.
type Object map[string]any

// Set implements flag.Value.
func (o *Object) Set(text string) error {
	*o = nil
	if text == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode((*map[string]any)(o)); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	if d.More() {
		return errors.New("it is more than one JSON object")
	}
	return nil
}

// String implements flag.Value.
func (o Object) String() string {
	if len(o) == 0 {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}
