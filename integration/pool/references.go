package main

import (
	"fmt"
	"slices"

	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/image"
)

// References are further execution points with the stock starter, for jobs with images: one that runs them with Docker and
// one that does it with Apptainer. Each is a pod like that of the stock starter, with an image that has these programs too.
// They accept only jobs with an image. They are on the first node alone. The pods' names are short: a shadow leaves slots'
// names of 50 characters out of hold reasons (condor_shadow.V6.1/baseshadow.cpp).

// memoryBesideDocker is how much memory each slot has, in MiB, in a pool with Docker, which gives a container no more than
// its slot's.
const memoryBesideDocker = 512

// slotMemory is the configuration for that.
func (p *pool) slotMemory() string {
	if !p.settings.StockDocker {
		return ""
	}
	return fmt.Sprintf("MEMORY = %d\n", memoryBesideDocker*p.settings.Slots)
}

// limitMemory gives payload containers as much as a job has beside them with Docker.
func (p *pool) limitMemory(spec map[string]any) {
	if !p.settings.StockDocker {
		return
	}
	for _, c := range list(spec, "containers") {
		if name, _ := c["name"].(string); slices.Contains(p.payloads(), name) {
			setPath(c, fmt.Sprintf("%dMi", memoryBesideDocker), "resources", "limits", "memory")
		}
	}
}

// A reference is one of them.
type reference struct {
	pod string
	// runtime is the value of StockReference in the slots' ads, and part of the image's name.
	runtime string
	// root is the root file system of its image.
	root debian.RootFS
	// chosen reports whether the settings ask for it.
	chosen func(p *pool) bool
	// config is configuration beside that of every stock execution point.
	config string
	// files are of the image's top layer.
	files func(p *pool) []image.File
	// edit changes the pod's specification, which is that of the stock execution point.
	edit func(spec map[string]any, ref string)
}

// referenceReady is an expression that is true of a slot unless that of a reference has not found its container runtime.
const referenceReady = `StockReference is undefined || (StockReference == "docker" ? HasDocker : HasSingularity) is true`

// dockerSocketDir is where the daemon and its clients meet, in both containers.
const dockerSocketDir = "/run/docker-socket"

// dockerHost is the address of the daemon for its clients.
const dockerHost = "unix://" + dockerSocketDir + "/docker.sock"

// references are all that there can be.
var references = []reference{
	{
		pod: "glidein-docker", runtime: "docker",
		root:   referenceRoot("docker.io", "docker-cli"),
		chosen: func(p *pool) bool { return p.settings.StockDocker },
		files:  func(*pool) []image.File { return nil }, // Docker itself speaks plain HTTP to registries on loopback
		edit:   dockerPod,
	},
	{
		pod: "glidein-apptainer", runtime: "apptainer",
		root:   withJava(referenceRoot().WithSid("apptainer", "squashfuse", "fuse2fs")),
		chosen: func(p *pool) bool { return p.settings.StockApptainer },
		// Debian's HTCondor lacks the file with which a startd finds out that Apptainer can run a
		// .sif; a slot that had it would say so.
		config: "SINGULARITY = /usr/bin/apptainer\nHasSIF = True\nSTARTD_ATTRS = $(STARTD_ATTRS) HasSIF\n",
		files:  func(p *pool) []image.File { return []image.File{plainRegistry(registryAddress(p.settings))} },
		edit:   apptainerPod,
	},
}

// image is the name of the reference's image.
func (r reference) image() string { return "stock-" + r.runtime }

// referenceCondor is the version of HTCondor that references have.
const referenceCondor = "25.14"

// referenceRoot is the root file system of the pilot with more packages. Its daemons' user may ask for containers.
func referenceRoot(packages ...string) debian.RootFS {
	root := condorRoot("forky")
	root.Packages = append(root.Packages, packages...)
	root.Customize = append([]string{`if grep -q ^docker: "$1"/etc/group; then chroot "$1" usermod --append --groups docker condor; fi`}, root.Customize...)
	return root
}

// withJava adds a Java for jobs of the java universe. Its packages want a directory for manual pages, which a small root lacks.
func withJava(root debian.RootFS) debian.RootFS {
	root.Customize = append([]string{`mkdir -p "$1"/usr/share/man/man1`, `chroot "$1" apt-get install -q -y --no-install-recommends default-jre-headless`}, root.Customize...)
	return root
}

// plainRegistry makes programs that read registries.conf(5) speak plain HTTP to a registry.
func plainRegistry(address string) image.File {
	return image.File{Path: "/etc/containers/registries.conf", Mode: 0o644, Data: fmt.Appendf(nil, "[[registry]]\nlocation = %q\ninsecure = true\n", address)}
}

// referenceImage puts the image of a reference together.
func (p *pool) referenceImage(r reference, root image.Layer) (image.Image, error) {
	files := append(p.support(), image.File{Path: "/image-name", Mode: 0o644, Data: []byte(r.image() + "\n")})
	layer, err := p.layer(r.image(), append(files, r.files(p)...))
	return image.Image{Name: r.image(), Layers: []image.Layer{root, layer}}, err
}

// chosenReferences are those that the settings ask for.
func (p *pool) chosenReferences() []reference {
	return slices.DeleteFunc(slices.Clone(references), func(r reference) bool { return !r.chosen(p) })
}

// referencePlan is the stock execution point with another image, and with what its container runtime needs.
func (p *pool) referencePlan(r reference) plan {
	ref := p.images[r.image()]
	made := p.stockPlan(0)
	made.pod, made.configMap = r.pod, configOf(r.pod)
	made.config = p.ownNetwork(0, r.pod) + p.executionPoint() + stockStarter + `StockReference = "` + r.runtime + `"
STARTD_ATTRS = $(STARTD_ATTRS) StockReference
START = TARGET.WantDocker =?= true || TARGET.WantContainer =?= true || TARGET.ConformanceImage isnt undefined
` + r.config
	made.images = map[string]string{"prepare": ref, pilotContainer: ref}
	edit := made.edit
	made.edit = func(pod map[string]any) {
		edit(pod)
		r.edit(child(pod, "spec"), ref)
	}
	return made
}

// dockerPod adds Docker's daemon to the pod. It is a container of its own, since it needs all that the kernel allows, and
// starts first: the startd looks for Docker only when it starts. It has the sandboxes at the path at which the pilot has
// them, because the starter names that path to the daemon. Its containers have no network of their own: a bridge would
// outlive the pod in the node's network.
func dockerPod(spec map[string]any, ref string) {
	type m = map[string]any
	ask := []any{"docker", "--host", dockerHost, "info"}
	inits, _ := spec["initContainers"].([]any)
	spec["initContainers"] = append(inits, m{
		"name": "dockerd", "image": ref, "restartPolicy": "Always",
		"command":         []any{"/bin/sh", "-c", ownCgroup, "dockerd", "/usr/sbin/dockerd", "--host", dockerHost, "--bridge=none", "--iptables=false", "--ip6tables=false"},
		"securityContext": m{"privileged": true},
		"startupProbe":    m{"exec": m{"command": ask}, "periodSeconds": 1, "failureThreshold": 60, "timeoutSeconds": 10},
		"volumeMounts": []any{
			m{"name": "execute", "mountPath": "/var/lib/condor/execute"},
			m{"name": "docker-socket", "mountPath": dockerSocketDir},
			m{"name": "docker", "mountPath": "/var/lib/docker"},
		},
	})
	for _, c := range list(spec, "containers") {
		addTo(c, "env", m{"name": "DOCKER_HOST", "value": dockerHost})
		addTo(c, "volumeMounts", m{"name": "docker-socket", "mountPath": dockerSocketDir})
	}
	addTo(spec, "volumes", m{"name": "docker-socket", "emptyDir": m{}}, m{"name": "docker", "emptyDir": m{}})
}

// apptainerPod gives the starter what it has on a machine of its own: Apptainer makes user namespaces and mounts, for which
// the pod's system calls and its /proc must be whole.
func apptainerPod(spec map[string]any, _ string) {
	for _, c := range list(spec, "containers") {
		c["securityContext"] = map[string]any{"privileged": true, "runAsUser": 0}
		// Users mount images with it. In a container only root may open it, whatever the machine allows.
		c["command"] = []any{"/bin/sh", "-c", "chmod 0666 /dev/fuse && exec /opt/podstarter/entrypoint pilot"}
	}
}

// ownCgroup becomes its arguments. With cgroup v2 it first makes room for containers below its own control group: one with
// processes cannot have children with controllers (cgroups(7)), and a privileged container sees all of the node's.
const ownCgroup = `if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	dir=/sys/fs/cgroup$own
	mkdir -p "$dir/init"
	for process in $(cat "$dir/cgroup.procs"); do
		echo "$process" >"$dir/init/cgroup.procs"
	done
	for controller in $(cat "$dir/cgroup.controllers"); do
		echo "+$controller" >"$dir/cgroup.subtree_control"
	done
	set -- "$@" "--cgroup-parent=${own%/}/docker"
fi
exec "$@"
`

// addTo appends to a list of an object.
func addTo(object map[string]any, name string, items ...any) {
	old, _ := object[name].([]any)
	object[name] = append(old, items...)
}
