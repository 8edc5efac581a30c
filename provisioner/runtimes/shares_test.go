package runtimes

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A schedd that has ever new groups, also under ever new names, takes none of what is
// known of this pool's jobs, and none of what is known of another guest's that come all
// the time.
func TestHostileSchedd(t *testing.T) {
	for name, schedd := range map[string]func(i int) string{
		"one name":  func(int) string { return "mallet" },
		"new names": func(i int) string { return fmt.Sprint("mallet", i/100) },
	} {
		t.Run(name, func(t *testing.T) {
			var l Learner
			fair := Group{ID: "flock-fair", Source: "guest", Guest: true, Clusters: []Cluster{{"guest", "8"}}}
			pods := map[string]Pod{"p": runs(start, "ap.example.org#7.0#1"), "q": runs(start, "guest#8.0#1")}
			watch(&l, look{append(of("g", "7"), fair), pods}, look{[]Group{fair}, map[string]Pod{"p": {}, "q": {}}})
			for i := range 40 {
				groups := []Group{fair}
				for n := range 2000 {
					at := 2000*i + n
					groups = append(groups, Group{ID: fmt.Sprint("flock-", at), Source: schedd(at), Guest: true, Clusters: []Cluster{{schedd(at), fmt.Sprint(at)}}})
				}
				watch(&l, look{groups, nil})
			}
			expect(t, &l, "g", 90*time.Second)
			expect(t, &l, "flock-fair", 90*time.Second)
			if n := l.groups.len(); n > most+mostOfGuests {
				t.Errorf("%d groups are remembered", n)
			}
		})
	}
}

// A guest that calls itself as a schedd of this pool does not change of which group
// that schedd's jobs are.
func TestGuestWithAnotherOnesName(t *testing.T) {
	var l Learner
	p := map[string]Pod{"p": runs(start, "ap.example.org#7.0#1")}
	usurper := Group{ID: "flock-x", Source: "ap.example.org of the pool y", Guest: true, Clusters: []Cluster{{"ap.example.org", "7"}}}
	watch(&l, look{[]Group{usurper}, p}, look{of("g", "7"), p}, look{[]Group{usurper}, map[string]Pod{"p": {}}})
	expect(t, &l, "g", 150*time.Second)
	expect(t, &l, "flock-x", 0)
}

// FuzzShares lets sources come with keys. There are never too many, and a source that
// has less than a fair part loses nothing.
func FuzzShares(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		chance := rand.New(rand.NewPCG(seed, 3))
		const values, sources = 40, 5
		s := newShares[int](values, sources)
		now := start
		mine := []string{"mine-1", "mine-2"} // less than values/sources
		for _, key := range mine {
			s.meet("mine", key, now)
		}
		for range 2000 {
			now = now.Add(time.Second)
			for _, key := range mine {
				s.touch(key, now)
			}
			source := fmt.Sprint("other", chance.IntN(1+chance.IntN(20)))
			key := fmt.Sprint(source, "-", chance.IntN(100))
			if v, _ := s.meet(source, key, now); v == nil || s.find(key) != v {
				t.Fatalf("%s is not there", key)
			}
			if chance.IntN(200) == 0 {
				s.forget(func(seen time.Time) bool { return now.Sub(seen) > 30*time.Second })
			}
			n := 0
			for name, l := range s.of {
				if l.Len() == 0 {
					t.Fatalf("%s has nothing and is there", name)
				}
				n += l.Len()
			}
			if n != len(s.entries) || n > values || len(s.of) > sources {
				t.Fatalf("there are %d values, %d by source, of %d sources", len(s.entries), n, len(s.of))
			}
			for _, key := range mine {
				if s.find(key) == nil {
					t.Fatalf("%s is lost", key)
				}
			}
		}
	})
}
