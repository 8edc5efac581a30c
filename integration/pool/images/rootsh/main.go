// The shell that a hostile image carries setuid to root: it takes root's ids if the kernel lets it, says how far it got,
// and becomes /bin/sh.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	began := os.Geteuid()
	err := syscall.Setresuid(0, 0, 0)
	fmt.Fprintf(os.Stderr, "rootsh: began as euid %d, setresuid: %v, now uid %d euid %d\n", began, err, os.Getuid(), os.Geteuid())
	err = syscall.Exec("/bin/sh", append([]string{"sh"}, os.Args[1:]...), os.Environ())
	fmt.Fprintln(os.Stderr, "rootsh: becoming /bin/sh:", err)
	os.Exit(126)
}
