package sshtojob

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// standardFiles is standard input and output as one connection.
type standardFiles struct{}

func (standardFiles) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (standardFiles) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (standardFiles) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// serveFiles is the server side of sftp. It runs in the payload's container as
// the payload; the kernel decides what it may do.
func serveFiles() error {
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	server, err := sftp.NewServer(standardFiles{}, sftp.WithServerWorkingDirectory(dir))
	if err == nil {
		err = server.Serve()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("sftp: %w", err)
	}
	return nil
}
