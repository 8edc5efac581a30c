package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/enter"
	"podstarter/integration/pool/internal/image"
	"podstarter/integration/pool/internal/statedir"
	"podstarter/integration/pool/internal/tool"
	"podstarter/integration/pool/internal/web"
)

// Names of pods and containers in deploy/.
const (
	poolPod        = "pool"
	poolContainer  = "pool"
	glideinPod     = "glidein"
	stockPod       = "glidein-stock"
	pilotContainer = "pilot"
	payloadName    = "payload"
	submitUser     = "alice"
	submitUID      = 1000
	// publicDir is where beside the users' homes public input files are linked to.
	publicDir = "public"
)

// A target is the container that a verb is about, and the command for it.
type target struct {
	pod, container, user string
	own                  bool
	args                 []string
}

// parseTarget reads the arguments of ap, ep and payload.
func parseTarget(verb string, args []string) (target, error) {
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	root := flags.Bool("root", false, "as root instead of as "+submitUser)
	user := flags.String("user", submitUser, "as another user that a test has made")
	stock := flags.Bool("stock", false, "in the execution point with the stock starter")
	other := flags.String("pod", "", "in another pod than glidein, made like it")
	pilot := flags.Bool("pilot", false, "as the user that the pilot container runs as instead of as root")
	container := flags.String("container", payloadName, "the payload container")
	if err := flags.Parse(args); err != nil || flags.NArg() == 0 {
		return target{}, errUsage
	}
	t := target{pod: glideinPod, container: pilotContainer, args: flags.Args()}
	switch verb {
	case "ap":
		t.pod, t.container = poolPod, poolContainer
		if !*root {
			t.user = *user
		}
	case "ep":
		if *stock {
			t.pod = stockPod
		}
		t.own = *pilot
	case "payload":
		t.container = *container
	}
	if *other != "" {
		t.pod = *other
	}
	return t, nil
}

// enterVerb runs a command in one of the containers.
func enterVerb(dir statedir.Dir, verb string, args []string) (int, error) {
	t, err := parseTarget(verb, args)
	if err != nil {
		return 2, err
	}
	c, err := enter.Find(containerdState(dir), cluster.Namespace, t.pod, t.container)
	if err != nil {
		return 1, err
	}
	return c.Run(enter.Command{Args: t.args, User: t.user, Own: t.own})
}

func containerdState(dir statedir.Dir) string { return dir.Run("containerd") }

const registryVerb = cluster.Registry

// serveRegistry is the registry's daemon: ADDRESS DIRECTORY.
func serveRegistry(args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	addresses, dir := args[:len(args)-1], args[len(args)-1]
	server := &http.Server{Handler: image.Store{Dir: dir}.Handler(log.New(os.Stderr, "", log.LstdFlags)), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, len(addresses))
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go func() { ended <- server.Serve(listener) }()
	}
	return <-ended
}

// kubectl becomes kubectl.
func kubectl(ctx context.Context, dir statedir.Dir, args []string) error {
	store, err := cache.User()
	if err != nil {
		return err
	}
	path, err := cluster.Kubectl(ctx, store, os.Stderr)
	if err != nil {
		return err
	}
	config := adminConfig(dir)
	if _, err := os.Stat(config); err != nil {
		return fmt.Errorf("no cluster runs here: %w; start one with `up`", err)
	}
	err = syscall.Exec(path, append([]string{"kubectl", "--kubeconfig", config}, args...), os.Environ())
	return fmt.Errorf("becoming %s: %w", path, err)
}

func adminConfig(dir statedir.Dir) string { return dir.Path("admin.kubeconfig") }

// status prints on one line what runs.
func status(ctx context.Context, dir statedir.Dir) (int, error) {
	settings, err := dir.Load()
	if err != nil {
		return 1, err
	}
	slots, err := slotStates(ctx, dir)
	if err != nil {
		fmt.Println("down:", firstLine(err.Error()))
		return 1, nil
	}
	ours := 0
	var parts []string
	for _, s := range slots {
		parts = append(parts, s.name+"="+s.state)
		if s.ours && s.usable() {
			ours++
		}
	}
	word := "up"
	if ours == 0 {
		word = "not ready"
	}
	fmt.Printf("%s: HTCondor %s, registry %s, web %s, slots %s\n", word, strings.Join(settings.Versions(), ", submit side "),
		registryAddress(settings), webAddress(settings), strings.Join(parts, " "))
	if ours == 0 {
		return 1, nil
	}
	return 0, nil
}

func registryAddress(s statedir.Settings) string {
	return fmt.Sprintf("127.0.0.1:%d", s.Ports[cluster.Registry])
}

// privateRegistry is the same registry for those who have a password.
func privateRegistry(s statedir.Settings) string {
	return fmt.Sprintf("%s:%d", image.Private, s.Ports[cluster.Registry])
}

// registryListens is where the registry listens.
func registryListens(s statedir.Settings) []string {
	if s.Address != "" {
		return []string{fmt.Sprintf(":%d", s.Ports[cluster.Registry])}
	}
	return []string{registryAddress(s), privateRegistry(s)}
}

func webAddress(s statedir.Settings) string {
	return fmt.Sprintf("127.0.0.1:%d", s.Ports[web.HTTP])
}

// A slot is the collector's entry of one.
type slot struct {
	name, state string
	ours        bool
	// ready says that jobs with images can run there, if the slot is there for them.
	ready bool
}

// of reports whether a slot is of the execution point in a pod, whose name its startd has.
func (s slot) of(pod string) bool {
	return slices.Contains(strings.Split(s.name, "@")[1:], pod)
}

func (s slot) usable() bool { return s.ready && (s.state == "Unclaimed" || s.state == "Claimed") }

// slotStates asks the collector.
func slotStates(ctx context.Context, dir statedir.Dir) ([]slot, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, err := tool.Output(ctx, tool.Command{
		Args: []string{self, "ap", "condor_status", "-af:t", "Name", "State", "HasPodStarter", referenceReady},
		Env:  []string{statedir.Env + "=" + dir.Root}, Dir: dir.Module,
	})
	if err != nil {
		return nil, fmt.Errorf("asking the collector: %w", err)
	}
	return parseSlots(out), nil
}

func parseSlots(out string) []slot {
	var slots []slot
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 4 {
			slots = append(slots, slot{name: f[0], state: f[1], ours: f[2] == "true", ready: f[3] == "true"})
		}
	}
	return slots
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// imagesFile holds the references of the images, by name.
func imagesFile(dir statedir.Dir) string { return dir.Path("images.json") }

func printImages(dir statedir.Dir) error {
	text, err := os.ReadFile(imagesFile(dir))
	if err != nil {
		return fmt.Errorf("no pool runs here: %w", err)
	}
	var refs map[string]string
	if err := json.Unmarshal(text, &refs); err != nil {
		return fmt.Errorf("reading %s: %w", imagesFile(dir), err)
	}
	for _, name := range imageNames {
		fmt.Println(name, refs[name])
	}
	for _, r := range references {
		if ref, ok := refs[r.image()]; ok {
			fmt.Println(r.image(), ref)
		}
	}
	return nil
}
