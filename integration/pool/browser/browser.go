// Package browser finds the browser in which tests look at pages.
package browser

import (
	"context"
	"io"
	"os/exec"

	"podstarter/integration/pool/internal/debian"
)

// Chromium returns the program, and installs Debian's package if the machine has none. log takes what apt says.
func Chromium(ctx context.Context, log io.Writer) (string, error) {
	if _, err := debian.InstallProgram(ctx, log, "chromium"); err != nil {
		return "", err
	}
	return exec.LookPath("chromium")
}
