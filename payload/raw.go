package payload

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// raw is a string of any bytes that JSON preserves. Valid UTF-8 is a JSON string; anything
// else is {"base64":"..."}, since JSON cannot express it and encoding/json would replace it
// by U+FFFD: a file name or an environment variable in Latin-1 must reach the job
// unchanged.
type raw string

type rawBytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(rawBytes{[]byte(r)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *raw) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var b rawBytes
		if err := unmarshalStrict(data, &b); err != nil {
			return err
		}
		*r = raw(b.Base64)
		return nil
	}
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("null where a string is expected")
	}
	*r = raw(*s)
	return nil
}

func rawList(list []string) []raw {
	if list == nil {
		return nil
	}
	out := make([]raw, len(list))
	for i, s := range list {
		out[i] = raw(s)
	}
	return out
}

func stringList(list []raw) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
