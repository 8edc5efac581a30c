package kube

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// What watches have shown is no answer for ever: a list of a watch that is broken is
// an error, so that nothing is made by it. It is none again once the watch goes on.
func TestBrokenWatch(t *testing.T) {
	client := fake.NewClientset()
	var broken atomic.Bool
	watches, tried := make(chan *watch.RaceFreeFakeWatcher, 10), make(chan struct{}, 100)
	refuse := func() error {
		select {
		case tried <- struct{}{}:
		default:
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no right"))
	}
	client.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		if broken.Load() {
			return true, nil, refuse()
		}
		w := watch.NewRaceFreeFake()
		watches <- w
		return true, w, nil
	})
	client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if broken.Load() {
			return true, nil, refuse()
		}
		return false, nil, nil
	})
	c, err := New(t.Context(), client, "site", "ns", DefaultGPU, templates(podManifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(later time.Duration) error {
		c.now = func() time.Time { return time.Now().Add(later) }
		_, err := c.List(t.Context())
		return err
	}
	first := <-watches
	if err := at(2 * maxBroken); err != nil {
		t.Errorf("a watch without news: %v", err)
	}
	if err := at(2 * maxSilent); err == nil || !strings.Contains(err.Error(), "the API server has said nothing") {
		t.Errorf("a watch that is silent for longer than watches last: %v", err)
	}
	broken.Store(true)
	first.Stop()
	<-tried
	<-tried // the first failure has been noted
	if err := at(0); err != nil {
		t.Errorf("a watch that broke just now: %v", err)
	}
	if err := at(2 * maxBroken); err == nil || !strings.Contains(err.Error(), "watching pods") || !strings.Contains(err.Error(), "no right") {
		t.Errorf("a watch that is broken for long: %v", err)
	}
	broken.Store(false)
	<-watches
	deadline := time.Now().Add(10 * time.Second)
	for at(2*maxBroken) != nil {
		if time.Now().After(deadline) {
			t.Fatalf("a watch that goes on: %v", at(2*maxBroken))
		}
		time.Sleep(5 * time.Millisecond)
	}
}
