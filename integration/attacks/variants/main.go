// Variants builds the programs without some of their defences that the attacks in a guest
// need, for the flag -variants of their test: a build in a guest takes a minute.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"podstarter/integration/attacks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "variants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("got the arguments %q; want the project's directory, and one for the programs", args)
	}
	root, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return attacks.BuildVariants(ctx, root, dir)
}
