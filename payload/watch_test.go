package payload

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSocketWatch: the watch reports each way in which a wrapper announces itself, at once.
func TestSocketWatch(t *testing.T) {
	for what, announce := range map[string]func(socket string) error{
		"made":   func(socket string) error { return os.WriteFile(socket, nil, 0o600) },
		"placed": func(socket string) error { return os.Rename(filepath.Dir(socket)+"/../beside", socket) },
		"touched": func(socket string) error {
			now := time.Now()
			return os.Chtimes(filepath.Dir(socket)+"/there", now, now)
		},
	} {
		t.Run(what, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "control")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{filepath.Join(above, "beside"), filepath.Join(dir, "there")} {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w, err := watchSocket(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			w.Arm()
			if err := announce(filepath.Join(dir, SocketName)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w.Events():
			case <-t.Context().Done():
			}
		})
	}
}
