package jointwatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/k8sexec/podwatch"
)

const starters = 32

// fast is a pace for tests, whose leaders do not linger.
var fast = Pace{Beat: 50 * time.Millisecond, Silence: 300 * time.Millisecond, Linger: 0, Retry: time.Millisecond}

type world struct {
	t   *testing.T
	api *podapitest.Server
	dir *os.Root
	Watch
}

func newWorld(t *testing.T, pace Pace) *world {
	t.Helper()
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot", UID: "uid"}}
	pod.Spec.Containers = []corev1.Container{{Name: "payload"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "payload"}}
	w := &world{t: t, api: podapitest.New(pod), dir: dir}
	life, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	w.Watch = Watch{Dir: path, Pace: pace, Life: life, Log: slog.New(slog.DiscardHandler), Pod: &podwatch.Pod{
		Connect: func() (podapi.API, error) { return w.api, nil }, Log: slog.New(slog.DiscardHandler),
		Times: podwatch.Times{Patience: time.Second, Call: time.Second, Retry: time.Millisecond},
	}}
	return w
}

// say changes the pod; the n-th word is that of version n+1.
func (w *world) say(word string) {
	w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.Image = word })
}

func word(pod *corev1.Pod) string { return podapi.StatusOf(pod, "payload").Image }

// starter follows the pod in a goroutine and notes what it sees, until it sees its last word.
type starter struct {
	heard chan string // by the test, which must read it
	over  chan struct{}
	stop  context.CancelFunc
	words []string
}

func (w *world) start(last string) *starter {
	ctx, stop := context.WithCancel(context.Background())
	s := &starter{heard: make(chan string, 1000), over: make(chan struct{}), stop: stop}
	w.t.Cleanup(func() { stop(); <-s.over })
	from := w.api.Snapshot()
	go func() {
		defer close(s.over)
		w.Follow(ctx, from, func(pod *corev1.Pod) bool {
			s.words = append(s.words, word(pod))
			s.heard <- word(pod)
			return word(pod) == last
		})
	}()
	return s
}

// hear waits until the starter has seen a word.
func (s *starter) hear(t *testing.T, want string) {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case got := <-s.heard:
			if got == want {
				return
			}
		case <-late:
			t.Fatalf("did not hear %q", want)
		}
	}
}

func (s *starter) end(t *testing.T) {
	t.Helper()
	select {
	case <-s.over:
	case <-time.After(10 * time.Second):
		t.Fatal("goes on")
	}
}

// TestOneWatch: starters see the same states by one watch.
func TestOneWatch(t *testing.T) {
	pace := fast
	pace.Linger = time.Minute
	w := newWorld(t, pace)
	all := make([]*starter, starters)
	for i := range all {
		all[i] = w.start("end")
	}
	for _, word := range []string{"one", "two", "end"} {
		w.say(word)
		for _, s := range all {
			s.hear(t, word)
		}
	}
	for _, s := range all {
		s.end(t)
		if diff := cmp.Diff([]string{"", "one", "two", "end"}, s.words); diff != "" {
			t.Error(diff)
		}
	}
	if got := w.api.Count("watch"); got != 1 {
		t.Errorf("%d watches, want 1", got)
	}
}

// TestLeaderLeaves: whoever goes, the others miss nothing.
func TestLeaderLeaves(t *testing.T) {
	w := newWorld(t, fast)
	all := make([]*starter, starters)
	for i := range all {
		all[i] = w.start("end")
	}
	for i := range starters - 1 {
		w.say(strconv.Itoa(i))
		for _, s := range all[i:] {
			s.hear(t, strconv.Itoa(i))
		}
		all[i].stop()
		all[i].end(t)
	}
	w.say("end")
	all[starters-1].hear(t, "end")
	if got := w.api.Count("watch"); got > starters {
		t.Errorf("%d watches for %d leaders at most", got, starters)
	}
}

// TestLinger: a leader that needs no more goes on while others listen, and not when none do.
func TestLinger(t *testing.T) {
	pace := fast
	pace.Linger = time.Minute
	w := newWorld(t, pace)
	first := w.start("one")
	w.leads()
	second := w.start("two")
	w.say("zero")
	second.hear(t, "zero") // so it is connected
	w.say("one")
	second.hear(t, "one")
	first.end(t)
	w.say("two")
	second.end(t)
	if got := w.api.Count("watch"); got != 1 {
		t.Errorf("%d watches, want 1", got)
	}
	late := time.After(10 * time.Second) // and not a minute
	for {
		lock, err := tryLock(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		if lock != nil {
			lock.Close()
			return
		}
		select {
		case <-time.After(time.Millisecond): // no event tells it
		case <-late:
			t.Fatal("watches for nobody")
		}
	}
}

// TestQuietPod: a leader without news is not taken for dead.
func TestQuietPod(t *testing.T) {
	w := newWorld(t, fast)
	first, second := w.start("end"), w.start("end")
	first.hear(t, "")
	second.hear(t, "")
	<-time.After(2 * fast.Silence)
	w.say("end")
	first.end(t)
	second.end(t)
	if got := w.api.Count("watch"); got != 1 {
		t.Errorf("%d watches, want 1", got)
	}
}

// leads waits until somebody leads.
func (w *world) leads() {
	w.t.Helper()
	late := time.After(10 * time.Second)
	for {
		if conn, err := dial(w.t.Context(), w.dir); err == nil {
			conn.Close()
			return
		}
		select {
		case <-time.After(time.Millisecond): // no event tells it
		case <-late:
			w.t.Fatal("nobody leads")
		}
	}
}

// TestBadLeader: what a leader does or says that is ill harms nobody.
func TestBadLeader(t *testing.T) {
	older := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "0"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "payload", Image: "older"}}}}
	frame, err := encode(older)
	if err != nil {
		t.Fatal(err)
	}
	unversioned := older.DeepCopy()
	unversioned.ResourceVersion = "v7"
	odd, err := encode(unversioned)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		says   []byte
		leaves bool // closes the connection, again and again
	}{
		"silent":         {},
		"older":          {says: frame},
		"version":        {says: odd},
		"too long":       {says: binary.BigEndian.AppendUint32(nil, maxPod+1)},
		"no pod":         {says: []byte{0, 0, 0, 2, 0xff, 0xff}},
		"half a frame":   {says: frame[:len(frame)-1], leaves: true},
		"half a length":  {says: []byte{0}, leaves: true},
		"only a promise": {says: binary.BigEndian.AppendUint32(nil, maxPod)},
		"leaves":         {leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fast)
			lock, err := tryLock(w.dir)
			if err != nil || lock == nil {
				t.Fatal("no lock", err)
			}
			defer lock.Close()
			socket, err := open(w.dir)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			defer all.Wait()
			defer socket.Close()
			all.Go(func() {
				for {
					conn, err := socket.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Write(test.says)
					if test.leaves {
						conn.Close()
					} else {
						defer conn.Close()
					}
				}
			})
			s := w.start("end")
			w.say("end")
			s.end(t)
			if diff := cmp.Diff([]string{"", "end"}, dropEqual(s.words)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// dropEqual leaves one of words that follow each other and are the same.
func dropEqual(words []string) []string {
	var out []string
	for _, w := range words {
		if len(out) == 0 || out[len(out)-1] != w {
			out = append(out, w)
		}
	}
	return out
}

// TestNoDirectory: without a private directory, or in a cluster whose versions
// cannot be compared, each has a watch of its own.
func TestNoDirectory(t *testing.T) {
	w := newWorld(t, fast)
	w.Dir += "/none"
	s, other := w.start("end"), w.start("end")
	s.hear(t, "")
	other.hear(t, "")
	w.say("end")
	s.end(t)
	other.end(t)
	if got := w.api.Count("watch"); got != 2 {
		t.Errorf("%d watches, want 2", got)
	}
}

// TestForbidden: the end of a watch that is forbidden is the end for all.
func TestForbidden(t *testing.T) {
	w := newWorld(t, fast)
	w.api.Fail = func(verb string, _ int) error {
		if verb == "watch" {
			return apierrors.NewForbidden(corev1.Resource("pods"), "pilot", nil)
		}
		return nil
	}
	for range 3 {
		w.start("end").end(t)
	}
}

// TestStoppedListener: a starter that takes nothing keeps nobody waiting.
func TestStoppedListener(t *testing.T) {
	w := newWorld(t, fast)
	first := w.start("end")
	w.leads()
	conn, err := dial(t.Context(), w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	second := w.start("end")
	second.hear(t, "")
	long := make([]byte, 1<<20)
	for i := range long {
		long[i] = 'x'
	}
	for i := range 20 {
		w.say(strconv.Itoa(i) + string(long))
	}
	w.say("end")
	first.end(t)
	second.end(t)
}

func FuzzDecode(f *testing.F) {
	frame, err := encode(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pilot"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame)
	f.Add(beat)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		pod, err := decode(bytes.NewReader(data))
		if err != nil || pod == nil {
			return
		}
		again, err := encode(pod)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(bytes.NewReader(again))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(pod, back); diff != "" {
			t.Error(diff)
		}
	})
}
