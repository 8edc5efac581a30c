package procfamily

import "testing"

func BenchmarkMembersOfUser(b *testing.B) {
	f := OfUser("/proc", 2_000_000_000)
	for b.Loop() {
		if _, err := f.Members(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDescendants(b *testing.B) {
	f := OfDescendants("/proc", 2)
	for b.Loop() {
		if _, err := f.Members(); err != nil {
			b.Fatal(err)
		}
	}
}
