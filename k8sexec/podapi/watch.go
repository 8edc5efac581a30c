package podapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"podstarter/k8sexec/corev1"
)

// Watcher gives the events of a watch.
type Watcher interface {
	// Events is closed when the watch has ended, as watches do after some minutes.
	Events() <-chan WatchEvent
	// Stop ends the watch. It can be called more than once.
	Stop()
}

// WatchEvent is one event of a watch (meta/v1 WatchEvent).
type WatchEvent struct {
	Type WatchType
	Pod  *corev1.Pod // nil if there is an error
	Err  error       // of type Failed: the last event
}

// WatchType says what has happened.
type WatchType string

// The values of WatchType.
const (
	Added    WatchType = "ADDED"
	Modified WatchType = "MODIFIED"
	Deleted  WatchType = "DELETED"
	Failed   WatchType = "ERROR"
)

// stream is a watch over HTTP.
type stream struct {
	request request
	events  chan WatchEvent
	stop    context.CancelFunc
}

func (s *stream) Events() <-chan WatchEvent { return s.events }
func (s *stream) Stop()                     { s.stop() }

// watch begins a watch.
func (c *connection) watch(ctx context.Context, r request) (Watcher, error) {
	ctx, stop := context.WithCancel(ctx)
	answer, err := c.send(ctx, r)
	if err != nil {
		stop()
		return nil, err
	}
	s := &stream{request: r, events: make(chan WatchEvent), stop: stop}
	go func() {
		defer stop()
		defer close(s.events)
		defer answer.Body.Close()
		s.read(ctx, answer.Body)
	}()
	return s, nil
}

// read passes events on until the watch ends.
func (s *stream) read(ctx context.Context, body io.Reader) {
	limited := &io.LimitedReader{R: body}
	decoder := json.NewDecoder(limited)
	for {
		limited.N = maxAnswer // for each event; the decoder has little in reserve
		event, err := readEvent(decoder)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && event.Type == "":
			continue
		case err != nil && limited.N <= 0:
			event = WatchEvent{Type: Failed, Err: fmt.Errorf("%s: an event has more than %d bytes", s.request, maxAnswer)}
		case isEOF(err):
			return
		case err != nil:
			event = WatchEvent{Type: Failed, Err: fmt.Errorf("%s: read an event: %w", s.request, err)}
		}
		select {
		case s.events <- event:
		case <-ctx.Done():
			return
		}
		if event.Type == Failed {
			return
		}
	}
}

// readEvent reads one event. Its type is empty if it means nothing to a starter.
func readEvent(from *json.Decoder) (WatchEvent, error) {
	var event struct {
		Type   WatchType       `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := from.Decode(&event); err != nil {
		return WatchEvent{}, err
	}
	switch event.Type {
	case Added, Modified, Deleted:
		pod := new(corev1.Pod)
		if err := json.Unmarshal(event.Object, pod); err != nil {
			return WatchEvent{}, err
		}
		return WatchEvent{Type: event.Type, Pod: pod}, nil
	case Failed:
		refused := new(corev1.StatusError)
		if err := json.Unmarshal(event.Object, &refused.Status); err != nil {
			return WatchEvent{}, err
		}
		if refused.Message == "" {
			return WatchEvent{}, errors.New("an error without a message")
		}
		return WatchEvent{Type: Failed, Err: refused}, nil
	}
	return WatchEvent{}, nil
}
