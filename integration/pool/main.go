// Pool runs a real one-node Kubernetes cluster and a real HTCondor pool on it, for the integration tests. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"podstarter/integration/deviceplugin"
	"podstarter/integration/pool/internal/daemon"
	"podstarter/integration/pool/internal/enter"
	"podstarter/integration/pool/internal/guest"
	"podstarter/integration/pool/internal/guestinit"
	"podstarter/integration/pool/internal/podnet"
	"podstarter/integration/pool/internal/statedir"
)

const usage = `usage: pool VERB ARG…

  up [--stock] [--stock-docker] [--stock-apptainer] [--condor 25.14|23.9] [--ap-condor 25.14|23.9] [--slots N] [--spares N]
     [--gpus N] [--partitionable] [--mode shared|unshared|rootless] [--pullers N] [--sidecars] [--faults N --faults-api PORT] [--kubernetes 1.34] [--guest | --guests N]
     [--network host|nat|ipv6|mixed] [--containerd 1.7] [--oci-runtime crun] [--gates GATE=true,…] [--kubelet '{"FIELD": …}'] [--user-namespaces]
     [--audit] [--controllers] [--dockerfile]
                      start the cluster and the pool, or bring what runs up to date; choices are kept until down,
                      but for the execution points that are there to fail, which go with the next up;
                      with --guest, in a User-Mode Linux machine of its own with cgroup v2, where all other verbs
                      then work as well; with --guests, in N of them, each a node of the cluster with an execution
                      point of its own: glidein, glidein-2 and so on; exit code 77 if no such machine can run here;
                      the last line of options is for a node that is not as the pool has it otherwise, --kubelet
                      for fields of the kubelet's configuration;
                      with --controllers, a controller manager and a scheduler, for Jobs and Deployments;
                      with --dockerfile, the execution point has the image that deploy/image/Dockerfile makes;
                      with --audit, log/audit.log has everybody's requests to the API server, not only those of pilots
  in [--node N] CMD…  run a command in that machine, as root
  guests ORDER…       do something to those machines from outside:
                        kill GUEST          as if its power was cut
                        boot GUEST          after that; it joins the cluster again
                        cut GUEST [GUEST…]  drop all that it and the others, or all others, send each other
                        heal                end all cuts
  status              one line; exit code 0 if a job could run
  ap [--root|--user NAME] CMD…
                      run a command where jobs are submitted, as the ordinary user alice, as root, or as another user
  ep [--stock|--pod POD] [--pilot] CMD…
                      run a command in the pilot container of the execution point, as root
  payload [--container NAME] CMD…
                      run a command in a payload container, as root
  suite CMD…          run a command, as root, in the Debian suite of the pilot image with a C++ compiler
                      and HTCondor's libraries
  kubectl ARG…        run kubectl as the cluster's administrator
  images              the references of the test images, one "NAME REFERENCE" a line
  objects             start the object store that has the cases about s3:// URLs; not with --guest
  logs DIR            copy every log into DIR
  down                stop everything and remove all traces but the cache
`

// errUsage asks for the usage text.
var errUsage = errors.New("wrong arguments")

func main() {
	code, err := run(os.Args[1:])
	if errors.Is(err, errUsage) || errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pool:", err)
		os.Exit(failure(code, err))
	}
	os.Exit(code)
}

// exitUnable is the exit code of `up --guest` on a machine that cannot run guests. integration/runtests knows it.
const exitUnable = 77

// failure is the exit code for an error of run.
func failure(code int, err error) int {
	if errors.Is(err, guest.ErrUnable) {
		return exitUnable
	}
	return max(code, 1)
}

func run(args []string) (int, error) {
	if len(args) == 0 {
		return 2, errUsage
	}
	verb, args := args[0], args[1:]
	switch verb {
	case daemon.Verb:
		return 1, daemon.Exec(args)
	case enter.Verb:
		return 127, enter.Exec(args)
	case registryVerb:
		return 1, serveRegistry(args)
	case guestRunVerb:
		return 1, guestRun(args)
	case guestServeVerb:
		return 1, guestServe(args)
	case podnet.RelayVerb:
		return 1, podnet.Relay(args)
	case deviceplugin.Verb:
		return 1, deviceplugin.Run(args)
	case podnet.Verb:
		podnet.Plugin()
		return 0, nil
	case guest.Verb:
		guestinit.Main(args)
	}
	dir, err := statedir.Find()
	if err != nil {
		return 1, err
	}
	if forwarded(dir, verb) {
		return forward(dir, verb, args)
	}
	switch verb {
	case "in":
		return inVerb(dir, args)
	case inviteVerb:
		return 0, invite(dir, args)
	case "ap", "ep", "payload":
		return enterVerb(dir, verb, args)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch verb {
	case "up":
		return 0, up(ctx, dir, args)
	case joinVerb:
		return 0, join(ctx, dir, os.Stdin)
	case "guests":
		return 0, guestsVerb(ctx, dir, args)
	case "status":
		return status(ctx, dir)
	case "suite":
		return suiteVerb(ctx, dir, args)
	case "kubectl":
		return 1, kubectl(ctx, dir, args)
	case "images":
		return 0, printImages(dir)
	case "objects":
		return 0, startObjects(ctx, dir)
	case "logs":
		if len(args) != 1 {
			return 2, errUsage
		}
		return 0, collectLogs(ctx, dir, args[0])
	case "down":
		return 0, down(ctx, dir)
	}
	return 2, errUsage
}
