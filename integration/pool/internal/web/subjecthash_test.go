package web

import "testing"

// What `openssl x509 -subject_hash` prints of authorities with these names.
func TestSubjectHash(t *testing.T) {
	for name, want := range map[string]string{"podstarter web authority": "34b2a676"} {
		if got, err := subjectHash(name); err != nil || got != want {
			t.Errorf("subjectHash(%q) = %s, %v; want %s", name, got, err, want)
		}
	}
}
