package imagetree

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Main is [Program]: it writes what comes on standard input below /, and prints a [Report]. Its
// exit code is 0 if there is a report, even of a failure.
func Main(stdin io.Reader, stdout, stderr io.Writer, args []string) int {
	order, err := parseArgs(args)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	unix.Umask(0)
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		fmt.Fprintln(stderr, os.NewSyscallError("open /", err))
		return 1
	}
	report := Write(root, stdin, order)
	if report.Reason == "" {
		if err := order.finish(root); err != nil {
			report = report.because("", err)
		}
	}
	if err := json.NewEncoder(stdout).Encode(report); err != nil {
		fmt.Fprintln(stderr, fmt.Errorf("print the report: %w", err))
		return 1
	}
	return 0
}
