package submitside

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"podstarter/classads"
)

// asked is a shadow that gives one job ad after the other, and counts.
type asked struct {
	lost    chan struct{}
	answers []string
	err     error
	n       int
}

func (s *asked) Lost() <-chan struct{} { return s.lost }

func (s *asked) GetJobInfo(context.Context) (*classads.Ad, error) {
	s.n++
	if s.n > len(s.answers) {
		return nil, s.err
	}
	return classads.ParseOld(s.answers[s.n-1])
}

// TestHalf: the shadow is asked until it has noted the end of its half of the last
// transfer, and not once more.
func TestHalf(t *testing.T) {
	const in, out = TransferringInput, TransferringOutput
	over := func(attribute string) func(*Half, *asked) { return func(h *Half, _ *asked) { h.Over(attribute) } }
	for name, tt := range map[string]struct {
		before  func(*Half, *asked)
		answers []string
		want    int // questions
	}{
		"no transfer":        {before: func(*Half, *asked) {}},
		"another shadow's":   {before: func(h *Half, s *asked) { h.Over(out); s.lost = make(chan struct{}) }},
		"noted":              {over(out), []string{out + " = false"}, 1},
		"noted, of input":    {over(in), []string{in + " = false\n" + out + " = true"}, 1},
		"noted after a time": {over(out), []string{out + " = true", out + " = true", out + " = false"}, 3},
		"nothing heard yet":  {over(out), []string{in + " = false", out + " = false"}, 2},
		"the last counts":    {func(h *Half, _ *asked) { h.Over(in); h.Over(out) }, []string{in + " = true\n" + out + " = false"}, 1},
		"noted once":         {func(h *Half, _ *asked) { h.Over(out); h.Await(t.Context()) }, []string{out + " = false"}, 1},
		"cannot be asked":    {over(out), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &asked{lost: make(chan struct{}), answers: tt.answers, err: errors.New("lost")}
			h := NewHalf(s, slog.New(slog.DiscardHandler))
			tt.before(h, s)
			h.Await(t.Context())
			if s.n != tt.want {
				t.Errorf("%d questions, want %d", s.n, tt.want)
			}
		})
	}
}

// TestHalfEnds: a shadow that never notes it is not waited for longer than ctx.
func TestHalfEnds(t *testing.T) {
	s := &asked{lost: make(chan struct{}), err: errors.New("lost")}
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		s.answers = append(s.answers, TransferringOutput+" = true")
	}
	h := NewHalf(s, slog.New(slog.DiscardHandler))
	h.Over(TransferringOutput)
	cancel()
	h.Await(ctx)
	if s.n != 1 {
		t.Errorf("%d questions after the end, want 1", s.n)
	}
}
