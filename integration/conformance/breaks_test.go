package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConnectionsForFilesAreOfAChild(t *testing.T) {
	const calls, files = 7, 8
	for _, tt := range []struct {
		name   string
		family []holder
		want   []uint64
	}{
		{"before the files", []holder{{10, 1, []uint64{calls}}}, nil},
		{"the shadow has not left them yet", []holder{{10, 1, []uint64{calls, files}}, {11, 10, []uint64{calls, files}}}, nil},
		{"a child sends them", []holder{{11, 10, []uint64{calls, files}}, {10, 1, []uint64{calls}}}, []uint64{files}},
		{"the shadow has gone", []holder{{11, 10, []uint64{calls, files}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ofChildren(tt.family)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
