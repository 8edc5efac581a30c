//go:build pool

package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"podstarter/integration/harness"
)

// TestPlainJobOfManyFiles transfers more input than fits into any buffer or packet,
// and so many small files that the starter is no longer woken for each. The shadow
// must accept all of it in our large packets.
func TestPlainJobOfManyFiles(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	contents := func(n int) []byte {
		b := make([]byte, n)
		_, _ = random.Read(b)
		return b
	}
	s := job("rename=big:back rename=tree:returned out=done", "transfer_input_files = big, tree", "transfer_output_files = back, returned")
	want := map[string][]byte{"back": contents(5<<20 + 1)}
	s.Files = append(s.Files, harness.File{Name: "big", Content: want["back"]})
	for i := range 300 {
		name := fmt.Sprintf("%d/%d/file-%d", i%5, i%3, i)
		text := contents(i * i % 3001)
		want["returned/"+name] = text
		s.Files = append(s.Files, harness.File{Name: "tree/" + name, Content: text})
	}
	// One that is cut into pieces, among the small ones.
	s.Files = append(s.Files, harness.File{Name: "tree/4/piecewise", Content: want["back"][:200_000]})
	want["returned/4/piecewise"] = want["back"][:200_000]
	job := submit(t, s)[0]
	mustExit(t, job, 0)
	wrong := 0
	for name, text := range want {
		if got := output(t, job, name); got != string(text) {
			if wrong++; wrong < 5 {
				t.Errorf("%s: %d bytes came back of %d, or others", name, len(got), len(text))
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d files of %d are not what they were", wrong, len(want))
	}
}
