package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/enter"
	"podstarter/integration/pool/internal/podnet"
)

// specAnnotation remembers what a pod was made from.
const specAnnotation = "pool.podstarter/made-from"

// startPods brings the pods to what deploy/ and the settings say, and waits until jobs could run.
func (p *pool) startPods(ctx context.Context) error {
	if err := p.makeHome(); err != nil {
		return err
	}
	if err := p.progress.step(ctx, "policies", p.applyPolicies); err != nil {
		return err
	}
	if err := p.progress.step(ctx, "pod "+poolPod, p.startSubmitSide); err != nil {
		return err
	}
	plans, gone := p.executionPoints()
	pullers, idle := p.pullerPlans()
	for _, name := range append(gone, idle...) {
		if err := p.deletePod(ctx, name, 1); err != nil {
			return err
		}
	}
	for i, name := range faultPods(maxFaults) {
		if i < p.settings.Faults {
			plans = append(plans, p.faultsPlan(name))
		} else if err := p.deletePod(ctx, name, 1); err != nil {
			return err
		}
	}
	// Pullers use the service account that comes with the pilot.
	for _, together := range [][]plan{plans, pullers} {
		g, gctx := errgroup.WithContext(ctx)
		for _, plan := range together {
			g.Go(func() error {
				return p.progress.step(gctx, "pod "+plan.pod, func(ctx context.Context) error { return p.realise(ctx, plan) })
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	if err := p.progress.step(ctx, "policies in force", p.waitPolicies); err != nil {
		return err
	}
	if err := p.progress.step(ctx, "pool", func(ctx context.Context) error { return p.waitPool(ctx, plans) }); err != nil {
		return err
	}
	return p.dropImages(ctx)
}

// startSubmitSide waits until somebody listens there. Execution points report their slots to the collector when they
// start. If that fails, they try again only after five minutes.
func (p *pool) startSubmitSide(ctx context.Context) error {
	if err := p.realise(ctx, p.poolPlan()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the submit side does not listen within a minute; its daemons' logs are in %s", p.dir.Path("log", "pool")))
	defer cancel()
	return cluster.Poll(ctx, 50*time.Millisecond, func(context.Context) (bool, error) {
		c, err := enter.Find(containerdState(p.dir), cluster.Namespace, poolPod, poolContainer)
		if err == nil {
			err = podnet.Reaches(c.PID, p.collector())
		}
		return err == nil, err
	})
}

// dropImages removes our own images of earlier builds from the node.
func (p *pool) dropImages(ctx context.Context) error {
	var current []string
	for _, ref := range p.images {
		current = append(current, ref)
	}
	return p.node.DropImages(ctx, registryAddress(p.settings)+"/", current)
}

// makeHome makes the directory of all homes of the submit side, with that of the submitting user and the directory of
// public files. Tests add those of other users.
func (p *pool) makeHome() error {
	for _, dir := range []string{p.dir.Path("home", publicDir), p.dir.Path("home", submitUser)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making the submit side's homes: %w", err)
		}
	}
	if err := os.Chown(p.dir.Path("home", submitUser), submitUID, submitUID); err != nil {
		return fmt.Errorf("making %s's home: %w", submitUser, err)
	}
	return p.writePATProducer()
}

// A plan is a kustomization of deploy/ with the tests' changes.
type plan struct {
	pod    string
	source string
	config string
	images map[string]string
	edit   func(pod map[string]any)
	// onHost says that the pod has the node's network and users in any case.
	onHost bool
	// node is the number of the pod's node.
	node int
	// configMap is the name of the pilot's configuration, if it is another than the kustomization's.
	configMap string
	// suffix is added to the names of role and binding.
	suffix string
	// logsOf is the user who gets the pod's directory of logs; 0 for a pod that does that itself.
	logsOf int
	// keep reports which other objects of the kustomization are wanted.
	keep func(kind string) bool
}

// realise renders the plan and makes its objects. A pod made from the same plan stays as it is.
func (p *pool) realise(ctx context.Context, plan plan) error {
	objects, err := cluster.Render(ctx, p.kubectl, adminConfig(p.dir), p.dir.Source("deploy", plan.source))
	if err != nil {
		return err
	}
	pod, others, err := p.edited(objects, plan)
	if err != nil {
		return err
	}
	key, err := fingerprint(append(others, pod))
	if err != nil {
		return err
	}
	setPath(pod, key, "metadata", "annotations", specAnnotation)
	for _, o := range others {
		if err := p.api.Apply(ctx, o); err != nil {
			return err
		}
	}
	live, err := p.api.Get(ctx, "Pod", plan.pod)
	switch {
	case err == nil && live.String("metadata", "annotations", specAnnotation) == key && live.String("metadata", "deletionTimestamp") == "" &&
		live.String("status", "phase") != "Failed" && live.String("status", "phase") != "Succeeded":
		if err := p.waitPod(ctx, plan.pod, func(container string) bool { return !isPayload(container) }); err != nil {
			return err
		}
		acts, err := p.awaken(ctx, plan, live)
		if err != nil || acts {
			return err
		}
		p.progress.print("the payload containers of the pod %s do not run; making it anew", plan.pod)
		if err := p.deletePod(ctx, plan.pod, 2); err != nil {
			return err
		}
	case err != nil && !cluster.NotFound(err):
		return err
	case err == nil:
		if err := p.deletePod(ctx, plan.pod, 2); err != nil {
			return err
		}
	}
	if plan.logsOf != 0 {
		if err := giveAway(p.dir.Path("log", plan.pod), plan.logsOf); err != nil {
			return err
		}
	}
	if _, err := p.api.Create(ctx, pod); err != nil {
		return err
	}
	return p.waitPod(ctx, plan.pod, func(string) bool { return true })
}

// giveAway makes a directory, if need be, and gives it and all in it to a user.
func giveAway(dir string, uid int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}

// edited makes the tests' changes to the objects of a kustomization.
func (p *pool) edited(objects []cluster.Object, plan plan) (pod cluster.Object, others []cluster.Object, err error) {
	for _, o := range objects {
		switch kind := o.String("kind"); {
		case kind == "Pod":
			pod = o
		case kind == "ConfigMap":
			setPath(o, plan.config, "data", "90-test.conf")
			if plan.configMap != "" {
				setPath(o, plan.configMap, "metadata", "name")
			}
			others = append(others, o)
		case plan.keep == nil || plan.keep(kind):
			plan.rename(o)
			others = append(others, o)
		}
	}
	if pod == nil {
		return nil, nil, fmt.Errorf("deploy/%s holds no pod", plan.source)
	}
	setPath(pod, plan.pod, "metadata", "name")
	spec := child(pod, "spec")
	spec["nodeName"] = nodeName(plan.node)
	switch {
	case p.settings.UserNamespaces && !plan.onHost:
		spec["hostUsers"] = false // which only a pod with a network of its own can have
	case p.ownNetworks():
	default:
		// Everything talks over the nodes' addresses, so that the cluster needs no network of its own.
		spec["hostNetwork"] = true
	}
	spec["dnsPolicy"] = "Default"
	spec["tolerations"] = []any{map[string]any{"operator": "Exists"}}
	hostPath(spec, "log", p.dir.Path("log", plan.pod))
	if plan.configMap != "" {
		useConfig(spec, plan.configMap)
	}
	unsize(spec)
	if plan.edit != nil {
		plan.edit(pod)
	}
	for _, c := range containers(spec) {
		name, _ := c["name"].(string)
		if isPayload(name) {
			name = payloadName
		}
		if ref, ok := plan.images[name]; ok {
			c["image"] = ref
		}
	}
	return pod, others, nil
}

// useConfig makes a ConfigMap the pilot's configuration.
func useConfig(spec map[string]any, configMap string) {
	for _, v := range list(spec, "volumes") {
		if c, ok := v["configMap"].(map[string]any); ok && v["name"] == "config" {
			c["name"] = configMap
		}
	}
}

// hostPath makes the volume called name a directory of the machine, which lives on when the pod goes.
func hostPath(spec map[string]any, name, path string) {
	for _, v := range list(spec, "volumes") {
		if v["name"] == name {
			delete(v, "emptyDir")
			v["hostPath"] = map[string]any{"path": path, "type": "DirectoryOrCreate"}
		}
	}
}

func containers(spec map[string]any) []map[string]any {
	return append(list(spec, "initContainers"), list(spec, "containers")...)
}

// isInit says whether a container is one of the initContainers.
func isInit(spec map[string]any, name string) bool {
	return slices.ContainsFunc(list(spec, "initContainers"), func(c map[string]any) bool { return c["name"] == name })
}

func list(m map[string]any, name string) []map[string]any {
	items, _ := m[name].([]any)
	var out []map[string]any
	for _, i := range items {
		if o, ok := i.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

func child(m map[string]any, name string) map[string]any {
	c, ok := m[name].(map[string]any)
	if !ok {
		c = map[string]any{}
		m[name] = c
	}
	return c
}

func setPath(m map[string]any, value string, names ...string) {
	for _, n := range names[:len(names)-1] {
		m = child(m, n)
	}
	m[names[len(names)-1]] = value
}

// fingerprint is a hash of the objects; maps are encoded in the order of their keys.
func fingerprint(objects []cluster.Object) (string, error) {
	text, err := json.Marshal(objects)
	if err != nil {
		return "", fmt.Errorf("hashing manifests: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// isPayload says whether a container is a payload container, by its name.
func isPayload(container string) bool {
	return container == payloadName || strings.HasPrefix(container, payloadName+"-")
}

// waitPod waits until the wanted containers of a pod run.
func (p *pool) waitPod(ctx context.Context, name string, wanted func(container string) bool) error {
	// A guest is slow while the machine still builds what other lanes need.
	const patience = 6 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the pod %s does not run after %s", name, patience))
	defer cancel()
	return cluster.Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		pod, err := p.api.Get(ctx, "Pod", name)
		if err != nil {
			return false, err
		}
		return podRuns(pod, wanted)
	})
}

// podRuns says whether the wanted containers of a pod run; the error says why not.
func podRuns(pod cluster.Object, wanted func(container string) bool) (bool, error) {
	states := map[string]map[string]any{}
	status := child(pod, "status")
	for _, c := range append(list(status, "initContainerStatuses"), list(status, "containerStatuses")...) {
		states[c["name"].(string)] = child(c, "state")
	}
	spec := child(pod, "spec")
	for _, c := range list(spec, "initContainers") {
		if err := waits(c["name"], states); err != nil {
			return false, err
		}
	}
	for _, c := range containers(spec) {
		name, _ := c["name"].(string)
		if isInit(spec, name) && !isSidecar(c) || !wanted(name) || states[name]["running"] != nil {
			continue
		}
		if err := waits(name, states); err != nil {
			return false, err
		}
		return false, fmt.Errorf("its container %s does not run", name)
	}
	return true, nil
}

// waits returns an error if the container waits for something.
func waits(container any, states map[string]map[string]any) error {
	name, _ := container.(string)
	waiting, ok := states[name]["waiting"].(map[string]any)
	if !ok {
		return nil
	}
	return fmt.Errorf("its container %s waits: %v %v", name, waiting["reason"], waiting["message"])
}

// waitPool waits until the collector has a usable slot of each execution point.
func (p *pool) waitPool(ctx context.Context, plans []plan) error {
	// Eight pilots that start at once, beside other pools on two processors, have needed more than a minute.
	const patience = 3 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no slots appear within %s; the daemons' logs are in %s", patience, p.dir.Path("log")))
	defer cancel()
	return cluster.Poll(ctx, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		slots, err := slotStates(ctx, p.dir)
		if err != nil {
			return false, err
		}
		for _, plan := range plans {
			if !slices.ContainsFunc(slots, func(s slot) bool { return s.of(plan.pod) && s.usable() }) {
				return false, fmt.Errorf("the collector knows %d slots, and none of %s that a job could use", len(slots), plan.pod)
			}
		}
		return true, nil
	})
}
