package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
)

// Orders are the lines that Order sends.
const Orders = `kill GUEST            as if its power was cut
boot GUEST            after a kill
cut GUEST [GUEST…]    drop all that it and the others, or all others, send each other
heal                  end all cuts`

// An order waits for one result.
type order struct {
	words []string
	done  chan error
}

// A fleet is the guests that run now. Only the goroutine of run uses it; before run, its maker.
type fleet struct {
	guests  []Placed
	wires   Switch
	console io.Writer
	orders  chan order
	ends    chan ending
	running map[string]*life
}

// A life is one run of a guest's kernel.
type life struct {
	machine Machine
	kill    context.CancelFunc
	// killed are the orders that wait for its end.
	killed []order
}

// An ending is the end of a life.
type ending struct {
	name string
	err  error
}

func newFleet(guests []Placed, wires Switch, console io.Writer) *fleet {
	return &fleet{
		guests: guests, wires: wires, console: console, running: map[string]*life{},
		orders: make(chan order), ends: make(chan ending, len(guests)),
	}
}

// boot starts a guest.
func (f *fleet) boot(name string) error {
	g, err := f.find(name)
	if err != nil {
		return err
	}
	if f.running[name] != nil {
		return fmt.Errorf("the guest %s runs already", name)
	}
	mac, err := net.ParseMAC(g.MAC)
	if err == nil {
		g.Wire, err = f.wires.Attach(name, mac)
	}
	if err != nil {
		return fmt.Errorf("connecting the guest %s: %w", name, err)
	}
	g.Console = f.console
	ctx, kill := context.WithCancel(context.Background())
	f.running[name] = &life{machine: g.Machine, kill: kill}
	go func() {
		defer g.Wire.Close()
		f.ends <- ending{name, g.Machine.Run(ctx)}
	}()
	return nil
}

func (f *fleet) find(name string) (Placed, error) {
	for _, g := range f.guests {
		if g.Name == name {
			return g, nil
		}
	}
	return Placed{}, fmt.Errorf("no guest has the name %q", name)
}

// run returns when no guest runs. One that was told to end may be booted again.
func (f *fleet) run(ctx context.Context) error {
	var errs *multierror.Error
	stop, waits := ctx.Done(), false
	for len(f.running) > 0 || waits {
		select {
		case <-stop:
			stop, waits = nil, false
			for _, l := range f.running {
				go l.halt()
			}
		case o := <-f.orders:
			if stop == nil {
				o.done <- errors.New("the guests are about to end")
				continue
			}
			f.obey(o)
		case end := <-f.ends:
			l := f.running[end.name]
			delete(f.running, end.name)
			if err := f.wires.Detach(end.name); err != nil {
				errs = multierror.Append(errs, err)
			}
			ordered := len(l.killed) > 0
			for _, o := range l.killed {
				o.done <- nil
			}
			if end.err != nil && !ordered && stop != nil {
				slog.Error("a guest has ended", "err", end.err)
				errs = multierror.Append(errs, end.err)
			}
			waits = ordered && stop != nil
		}
	}
	return errs.ErrorOrNil()
}

// halt asks a guest to power off, and ends one that does not.
func (l *life) halt() {
	if err := l.machine.Halt(); err != nil {
		slog.Warn("the guest is ended at once", "err", err)
		l.kill()
		return
	}
	time.AfterFunc(HaltTime, l.kill)
}

func (f *fleet) killAll() {
	for _, l := range f.running {
		l.kill()
	}
}

// obey answers an order, now or when it is done.
func (f *fleet) obey(o order) {
	verb, names := "", o.words
	if len(o.words) > 0 {
		verb, names = o.words[0], o.words[1:]
	}
	switch {
	case verb == "heal" && len(names) == 0:
		f.wires.Heal()
		o.done <- nil
	case verb == "cut" && len(names) > 0:
		o.done <- f.wires.Cut(names[0], names[1:]...)
	case verb == "boot" && len(names) == 1:
		o.done <- f.boot(names[0])
	case verb == "kill" && len(names) == 1:
		l := f.running[names[0]]
		if l == nil {
			o.done <- fmt.Errorf("no guest %q runs", names[0])
			return
		}
		l.killed = append(l.killed, o)
		l.kill()
	default:
		o.done <- fmt.Errorf("no such order: %q; there are:\n%s", strings.Join(o.words, " "), Orders)
	}
}
