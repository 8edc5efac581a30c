package jobfiles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/sandboxtest"
)

// The pause before a job may start is as long as the file system's clock needs to move,
// whatever its resolution and its time.
func TestSettle(t *testing.T) {
	stamp := func(t time.Time) unix.Timespec { return unix.NsecToTimespec(t.UnixNano()) }
	grain := func(step, ahead time.Duration) func() (unix.Timespec, error) {
		return func() (unix.Timespec, error) { return stamp(time.Now().Add(ahead).Truncate(step)), nil }
	}
	for _, c := range []struct {
		name   string
		now    func() (unix.Timespec, error)
		newest func(now unix.Timespec) unix.Timespec // of the files, nil: as the clock shows
		most   time.Duration
		moves  bool // the clock must be past newest afterwards
	}{
		{name: "milliseconds", now: grain(4*time.Millisecond, 0), most: 5 * time.Millisecond, moves: true},
		{name: "whole seconds", now: grain(time.Second, 0), most: 1100 * time.Millisecond, moves: true},
		{name: "two seconds", now: grain(2*time.Second, 0), most: 2100 * time.Millisecond, moves: true},
		{name: "another machine's clock", now: grain(10*time.Millisecond, time.Hour), most: 11 * time.Millisecond, moves: true},
		{name: "another machine's clock, slow", now: grain(time.Second, -time.Hour), most: 1100 * time.Millisecond, moves: true},
		{name: "files of long ago", now: grain(time.Second, 0), newest: func(n unix.Timespec) unix.Timespec { n.Sec -= 100; return n }, moves: true},
		{name: "no files", now: grain(time.Second, 0), newest: func(unix.Timespec) unix.Timespec { return unix.Timespec{} }, moves: true},
		{name: "clock set back by hours", now: grain(time.Millisecond, 0), newest: func(n unix.Timespec) unix.Timespec { n.Sec += 7200; return n }},
		{name: "clock set back a little", now: grain(time.Millisecond, 0), newest: func(n unix.Timespec) unix.Timespec { n.Sec++; return n }, most: 1100 * time.Millisecond, moves: true},
		{name: "clock that stands still", now: func() (unix.Timespec, error) { return unix.Timespec{Sec: 7}, nil }, most: patience + 25*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newest, err := c.now()
				must(t, err)
				if c.newest != nil {
					newest = c.newest(newest)
				}
				began := time.Now()
				must(t, settle(t.Context(), newest, c.now))
				if took := time.Since(began); took > c.most {
					t.Errorf("took %v, longer than %v", took, c.most)
				}
				if now, _ := c.now(); c.moves != after(now, newest) {
					t.Errorf("afterwards the clock shows %v, the newest file %v", now, newest)
				}
			})
		})
	}
	t.Run("cannot be asked", func(t *testing.T) {
		newest, err := machineNow()
		must(t, err)
		must(t, settle(t.Context(), newest, func() (unix.Timespec, error) { return unix.Timespec{}, unix.EROFS }))
		if now, _ := machineNow(); !after(now, newest) {
			t.Errorf("%v is not later than %v", now, newest)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("vacated")
		cancel(why)
		if err := settle(ctx, unix.Timespec{Sec: 7}, func() (unix.Timespec, error) { return unix.Timespec{Sec: 7}, nil }); !errors.Is(err, why) {
			t.Error(err)
		}
	})
}

// A change right behind the catalog, of the same length and with the old time
// put back, is seen on the file system that the tests run on.
func TestCatalogSeesTheNextChange(t *testing.T) {
	s := sandboxtest.New(t)
	for i := range 50 {
		sandboxtest.Put(t, s, map[string]string{"in": "before"})
		var seen Catalog
		sandboxtest.As(t, s, func(dir string) (err error) {
			if seen, err = TakeCatalog(t.Context(), s.Root()); err != nil {
				return err
			}
			name := filepath.Join(dir, "in")
			was, err := s.Root().Stat("in")
			if err != nil {
				return err
			}
			if err := os.WriteFile(name, []byte("behind"), 0o644); err != nil {
				return err
			}
			if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{was.Mtim, was.Mtim}, 0); err != nil {
				return err
			}
			st, err := s.Root().Stat("in")
			if known, same := seen.look("in", &st); err == nil && (!known || same) {
				t.Errorf("round %d: the change does not show: %+v", i, st)
			}
			return err
		})
	}
}
