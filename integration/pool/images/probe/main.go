// A job for images that hold nothing else: it says where and as whom it runs, and ends as it is told.
//
//	probe [-sleep DURATION] [-exit CODE | -signal NUMBER] [ARG…]
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

func main() {
	sleep := flag.Duration("sleep", 0, "how long to wait before the end")
	code := flag.Int("exit", 0, "the exit code")
	sig := flag.Int("signal", 0, "the signal to end by")
	env := flag.Bool("env", false, "print the environment as well")
	flag.Parse()
	name, err := os.ReadFile("/image-name")
	if err != nil {
		name = []byte("unknown: " + err.Error())
	}
	wd, err := os.Getwd()
	if err != nil {
		wd = "unknown: " + err.Error()
	}
	groups, err := os.Getgroups()
	if err != nil {
		groups = nil
	}
	fmt.Printf("image: %s\nuid: %d %d\ngid: %d %d\ngroups: %v\ncwd: %s\nargs: %q\n",
		strings.TrimSpace(string(name)), os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid(), groups, wd, flag.Args())
	if *env {
		for _, e := range os.Environ() {
			fmt.Println("env:", e)
		}
	}
	time.Sleep(*sleep)
	if *sig != 0 {
		// The runtime would catch most signals; the default action must end this process.
		if err := endBy(syscall.Signal(*sig)); err != nil {
			fmt.Fprintln(os.Stderr, "probe:", err)
			os.Exit(125)
		}
	}
	os.Exit(*code)
}
