// Command probe is the payload of the tests on a real pool: one static program
// that runs in an image without a shell just as well as in a Debian, says what
// it sees there, and misbehaves on request.
//
//	probe [STEP...] [-- ANYTHING...]
//
// Steps are carried out in order; what follows -- is only reported. The exit
// code is 0, unless a step says otherwise, or 125 when a step fails.
//
//	facts            print what this process sees as JSON (package facts)
//	out=TEXT         print a line on standard output
//	err=TEXT         print a line on standard error
//	cat=NAME         print a file
//	chirp=NAME       say the requests in file NAME to the chirp proxy and print what it answers
//	copy             copy standard input to standard output
//	file=NAME:TEXT   write a file, and the directories above it
//	disk=NAME:MIB    write a file of that size
//	peek=PATH        try to read PATH; facts tells what came of it
//	suid=PATH        run the setuid program PATH; facts tells its effective user
//	mark=PATH        create PATH, which must not exist yet
//	shm=KEY          create a System V shared memory segment, which must not exist yet
//	memory=MIB       touch so much memory and keep it
//	eat=HOW          use ever more memory: slowly, leap, shared, cached (after filling the page cache), crowd
//	burn=SECONDS     use so much CPU time
//	sleep=DURATION   as time.ParseDuration reads it
//	resume=NAME:CODE when file NAME is there, as after an eviction, print it and exit with CODE
//	trap=NAME:CODE   from now on SIGTERM writes file NAME and exits with CODE
//	ignore           from now on ignore SIGTERM, SIGINT, SIGHUP and SIGQUIT
//	detach=N         start N processes that leave session and parent and ignore signals
//	stopped=N        the same, and stopped
//	hydra=N          the same as detach, but each goes on starting its successor and exits
//	attack=NAME,...  try attacks on the surroundings; a line of JSON for each (package facts)
//	leave=WHAT       leave something in shared memory, "leftover" or "treasure"
//	link=NAME:TARGET make a symbolic link
//	fifo=NAME        make a named pipe
//	rename=FROM:TO   rename
//	meet=NAME        make a named pipe, and wait for what the test says through it
//	flood=DIRECTORY  fill it with what is unpleasant to read, send and remove
//	covet=ADDR       say there, over UDP, where this sandbox is, and which other one can be read as soon as one can
//	crowd            start processes until there is no room for another one
//	ready            from now on be called probe-ready in the process table
//	forever          wait for ever
//	account=JOB:NAME print what this process sees as one line of JSON (facts.Account); NAME is its input
//	end              exit with the code that goes with the input of account
//	setup, teardown  what a program of the site does before and after a job
//	exit=CODE        exit
//	signal=N         die of signal N
//
// Called as a file transfer plugin (-infile, -outfile) it is a hostile one.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// failed is the exit code when a step could not be carried out. No test asks for this code.
const failed = 125

func main() {
	if slices.Contains(os.Args, "-infile") {
		if err := plugin(os.Args); err != nil {
			fmt.Fprintln(os.Stderr, "probe: as a plugin:", err)
			os.Exit(failed)
		}
		return
	}
	state := &state{}
	for _, step := range os.Args[1:] {
		if step == "--" {
			break
		}
		verb, argument, _ := strings.Cut(step, "=")
		do, ok := steps[verb]
		if !ok {
			fmt.Fprintf(os.Stderr, "probe: no step %q\n", step)
			os.Exit(failed)
		}
		if err := do(state, argument); err != nil {
			fmt.Fprintf(os.Stderr, "probe: %s: %v\n", step, err)
			os.Exit(failed)
		}
	}
}
