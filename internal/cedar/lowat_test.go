package cedar

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// patientPair is a pair of streams whose second reads patiently.
func patientPair(t *testing.T) (tx, rx *Stream) {
	t.Helper()
	tx, rx = pair(t)
	encrypt(t, tx, rx)
	rx.SetPatient(true)
	return tx, rx
}

// TestPatientReader takes many small messages that are sent one by one, files among
// them that are greater than what the kernel gathers.
func TestPatientReader(t *testing.T) {
	tx, rx := patientPair(t)
	const messages = 2000
	sent := make(chan error, 1)
	go func() {
		sent <- func() error {
			for i := range messages {
				tx.PutInt(int64(i))
				if err := tx.EndMessage(); err != nil {
					return err
				}
				if i%500 == 250 {
					if err := tx.PutFile(zeros{}, 3*wakeSize+1); err != nil {
						return err
					}
					if err := tx.EndMessage(); err != nil {
						return err
					}
				}
			}
			return nil
		}()
	}()
	for i := range messages {
		v, err := rx.GetInt()
		if err == nil {
			err = rx.EndOfMessage()
		}
		if err != nil || v != int64(i) {
			t.Fatalf("message %d: %d, %v", i, v, err)
		}
		if i%500 != 250 {
			continue
		}
		n, err := rx.GetFile(io.Discard, -1)
		if err == nil {
			err = rx.EndOfMessage()
		}
		if err != nil || n != 3*wakeSize+1 {
			t.Fatalf("file behind message %d: %d bytes, %v", i, n, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// TestPatientReaderOfLittle gets less than the kernel gathers, and nothing behind it
// until it has answered.
func TestPatientReaderOfLittle(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		tx, rx := patientPair(t)
		rx.SetTimeout(timeout)
		for i := range 20 {
			// Both ways, so that each has to wait for the other.
			for _, way := range [][2]*Stream{{tx, rx}, {rx, tx}} {
				way[0].PutInt(int64(i))
				if err := way[0].EndMessage(); err != nil {
					t.Fatal(err)
				}
				v, err := way[1].GetInt()
				if err == nil {
					err = way[1].EndOfMessage()
				}
				if err != nil || v != int64(i) {
					t.Fatalf("%d: %d, %v", i, v, err)
				}
			}
		}
		rx.SetPatient(false)
		tx.PutInt(1)
		if err := tx.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if _, err := rx.GetInt(); err != nil {
			t.Fatal(err)
		}
		if rx.recv.wake.size != 0 {
			t.Errorf("the kernel still gathers %d bytes for a reader that is patient no more", rx.recv.wake.size)
		}
	}
}

// TestPatientReaderStops is about what ends a wait: the end of the connection, a
// timeout, a context.
func TestPatientReaderStops(t *testing.T) {
	t.Run("end", func(t *testing.T) {
		tx, rx := patientPair(t)
		tx.Close()
		if _, err := rx.GetInt(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
	t.Run("end inside a packet", func(t *testing.T) {
		tx, rx := patientPair(t)
		if _, err := tx.Conn().Write([]byte{1, 0, 0}); err != nil {
			t.Fatal(err)
		}
		tx.Close()
		if _, err := rx.GetInt(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		_, rx := patientPair(t)
		rx.SetTimeout(20 * time.Millisecond)
		if _, err := rx.GetInt(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("context", func(t *testing.T) {
		_, rx := patientPair(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		defer rx.Cancel(ctx)()
		got := make(chan error, 1)
		go func() { _, err := rx.GetInt(); got <- err }()
		cancel(reason)
		if err := <-got; !errors.Is(err, reason) {
			t.Error(err)
		}
	})
}
