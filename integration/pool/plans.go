package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"podstarter/integration/pool/internal/cluster"
	"podstarter/integration/pool/internal/web"
)

// network is the configuration that keeps all traffic of the pool on loopback, or else between the nodes or the pods. It
// contains the image of the submit side: startds find a new collector only minutes after the old one has gone, so they are made anew
// with it.
func (p *pool) network(node int, pod string) string {
	return fmt.Sprintf(`# submit side: %[1]s
CONDOR_HOST = %[2]s
COLLECTOR_HOST = %[3]s
SHARED_PORT_PORT = %[4]d
%[5]sBIND_ALL_INTERFACES = False
NO_DNS = True
DEFAULT_DOMAIN_NAME = pool.invalid
UID_DOMAIN = pool.invalid
`, p.images["submit"], p.submitAddress(), p.collector(), p.settings.Ports[pod], p.interfaces(node))
}

// ownNetwork is that of an execution point, which may have another network than its node.
func (p *pool) ownNetwork(node int, pod string) string {
	config := p.network(node, pod)
	if p.ownNetworks() && p.podNetwork().Private() {
		// As a site has it whose execution points are behind NAT: docs/admin/network.md.
		config += "PRIVATE_NETWORK_NAME = " + pod + "\nCCB_ADDRESS = $(COLLECTOR_HOST)\n"
	} else {
		// The kit has a broker, and everybody reaches these pods without one, as the execution point with the stock starter.
		config += "PRIVATE_NETWORK_NAME =\nCCB_ADDRESS =\n"
	}
	if p.settings.UserNamespaces {
		config += "NETWORK_INTERFACE = " + cluster.PodNetwork + "*\n"
	}
	return config
}

// executionPoint is the configuration that both execution points share.
func (p *pool) executionPoint() string {
	var b strings.Builder
	fmt.Fprintf(&b, `NUM_CPUS = %[1]d
NUM_SLOTS = %[1]d
NUM_SLOTS_TYPE_1 = %[1]d
RUNBENCHMARKS = False
STARTER_ALLOW_RUNAS_OWNER = False
DEDICATED_EXECUTE_ACCOUNT_REGEXP = slot[0-9]+
STARTER_DEBUG = D_FULLDEBUG D_SUB_SECOND D_COMMAND
MAX_STARTER_LOG = 100 Mb
STARTER_INITIAL_UPDATE_INTERVAL = 2
POD_STARTER_MAX_REST = 0
`, p.settings.Slots)
	// The pool's registry is on the node's loopback address, to which pods with a network of their own have no way.
	if p.ownNetworks() || p.settings.UserNamespaces {
		b.WriteString("POD_STARTER_ASK_REGISTRIES = False\n")
	} else {
		b.WriteString("POD_STARTER_PLAIN_REGISTRIES = " + registryAddress(p.settings) + ", " + privateRegistry(p.settings) + "\n")
	}
	b.WriteString(p.slotMemory())
	if p.settings.APCondor != "" {
		// What 25.14 subtracts from the disk that a job requests is an error to the ClassAds of 23.9, so a negotiator
		// of that version matches nothing to an execution point with the stock starter.
		b.WriteString("CATALOG_SPACE = 0\n")
	}
	for i := range p.settings.Slots {
		fmt.Fprintf(&b, "SLOT%[1]d_USER = slot%[1]d\n", i+1)
	}
	return b.String()
}

// cpusPerPayload is how many CPUs a partitionable slot claims to have for each payload container: enough for the startd
// to run out of containers first.
const cpusPerPayload = 4

// cutSlots is the configuration of one slot with so many CPUs, from which the others are cut.
func (p *pool) cutSlots(cpus int) string {
	if !p.settings.Partitionable {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `NUM_CPUS = %d
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%%
SLOT_TYPE_1_PARTITIONABLE = True
`, cpus)
	// The startd may number a slot while an earlier one is on its way out.
	for i := range maxUsers {
		fmt.Fprintf(&b, "SLOT1_%[1]d_USER = slot%[1]d\n", i+1)
	}
	return b.String()
}

func (p *pool) poolPlan() plan {
	return plan{
		pod: poolPod, source: "pool-single", config: p.network(0, poolPod) + "PER_JOB_HISTORY_DIR = $(LOG)\nSEC_CREDENTIAL_DIRECTORY_OAUTH = /var/lib/condor/oauth_credentials\nSHADOW_CHECKPROXY_INTERVAL = 2\nDOCKER_PAT_PRODUCER = " + patProducer + "\n" + p.publicFiles() + p.farNodes(),
		images: map[string]string{poolContainer: p.images["submit"]}, onHost: true,
		edit: func(pod map[string]any) {
			spec := child(pod, "spec")
			hostPath(spec, "home", p.dir.Path("home"))
			// A kubelet that has to evict leaves the submit side alone.
			setPath(spec, "system-node-critical", "priorityClassName")
			p.joinSubmitNetwork(spec)
		},
	}
}

// farNodes is the configuration of the submit side for execution points on other nodes, which may vanish without a word: by
// default it would notice after more than six minutes.
func (p *pool) farNodes() string {
	if p.nodes() == 1 {
		return ""
	}
	return "TCP_KEEPALIVE_INTERVAL = 10\n"
}

// publicFiles is the configuration of the submit side for input that its owner publishes: links in a directory of the
// file system with the users' files, which the web server serves.
func (p *pool) publicFiles() string {
	return fmt.Sprintf("ENABLE_HTTP_PUBLIC_FILES = True\nHTTP_PUBLIC_FILES_ADDRESS = %s/public\nHTTP_PUBLIC_FILES_ROOT_DIR = /home/%s\n",
		webAddress(p.settings), publicDir)
}

// Modes of the execution point; see docs/admin/modes.md.
const (
	modeShared   = "shared"
	modeUnshared = "unshared"
	modeRootless = "rootless"
)

// glideins are the kustomizations of the modes.
var glideins = map[string]string{modeShared: "glidein", modeUnshared: "glidein-unshared", modeRootless: "glidein-rootless"}

// pilotUser is the user of a pilot that is not root: it can write into its log directory only if it owns that.
func (p *pool) pilotUser() int {
	if p.settings.Mode == modeRootless {
		return 1000 // runAsUser in deploy/glidein-rootless
	}
	return 0
}

// payloads are the names of the payload containers, spares among them.
func (p *pool) payloads() []string {
	names := []string{payloadName}
	for i := 2; i <= p.settings.Slots+p.settings.Spares; i++ {
		names = append(names, fmt.Sprintf("%s-%d", payloadName, i))
	}
	return names
}

// containers is the configuration of the payload containers.
func (p *pool) containers() string {
	config := "POD_STARTER_CONTAINERS = " + strings.Join(p.payloads(), ", ") + "\n"
	if p.settings.Spares > 0 {
		config += fmt.Sprintf("POD_STARTER_SPARES = %d\n", p.settings.Spares)
	}
	return config
}

// glideinPlan is our execution point on a node.
func (p *pool) glideinPlan(node int) plan {
	return plan{
		pod: podOn(node, glideinPod), source: glideins[p.settings.Mode], node: node,
		config: p.ownNetwork(node, podOn(node, glideinPod)) + p.executionPoint() + p.cutSlots(cpusPerPayload*p.settings.Slots) + p.containers() + p.gpus() + p.pullers(node),
		images: map[string]string{"prepare": p.images["pilot"], pilotContainer: p.images["pilot"], payloadName: p.images["debian"]},
		edit: func(pod map[string]any) {
			spec := child(pod, "spec")
			copyPayload(spec, p.payloads())
			p.giveGPUs(spec)
			p.limitMemory(spec)
			p.shape(spec)
			host, port := p.apiServer()
			reachAPIServer(spec, host, port)
			p.reachWeb(spec)
		},
		logsOf: p.pilotUser(),
	}.ownNames()
}

// reachAPIServer gives the pilot the address of the API server: nothing on this machine routes the service's address to
// it.
func reachAPIServer(spec map[string]any, host string, port int) {
	for _, c := range list(spec, "containers") {
		if c["name"] != pilotContainer {
			continue
		}
		env, _ := c["env"].([]any)
		c["env"] = append(env,
			map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": host},
			map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": strconv.Itoa(port)})
	}
}

// certificatesMount is where a pilot looks for certificates of authorities.
const certificatesMount = "/etc/podstarter/certificates"

// reachWeb gives the pilot what transfer plugins look for in their environment: a directory of authorities (the stock
// curl_plugin), and the site's proxy, for host names that do not exist.
func (p *pool) reachWeb(spec map[string]any) {
	const volume = "certificates"
	for _, c := range list(spec, "containers") {
		if c["name"] != pilotContainer {
			continue
		}
		env, _ := c["env"].([]any)
		c["env"] = append(env,
			map[string]any{"name": "X509_CERT_DIR", "value": certificatesMount},
			map[string]any{"name": "http_proxy", "value": fmt.Sprintf("http://127.0.0.1:%d", p.settings.Ports[web.HTTP])},
			map[string]any{"name": "no_proxy", "value": "127.0.0.1,localhost"})
		mounts, _ := c["volumeMounts"].([]any)
		c["volumeMounts"] = append(mounts, map[string]any{"name": volume, "mountPath": certificatesMount, "readOnly": true})
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": volume, "hostPath": map[string]any{
		"path": webServer(p.dir, p.settings).Certificates(), "type": "DirectoryOrCreate"}})
}

// copyPayload gives the pod a payload container for each name, all like the first, and each with volumes of its own where the
// first has some.
func copyPayload(spec map[string]any, names []string) {
	items, _ := spec["containers"].([]any)
	volumes, _ := spec["volumes"].([]any)
	for _, v := range list(spec, "volumes") {
		if v["name"] != ownVolume+names[0] {
			continue
		}
		for _, name := range names[1:] {
			volumes = append(volumes, renamed(v, names[0], name))
		}
	}
	spec["volumes"] = volumes
	for _, c := range list(spec, "containers") {
		if c["name"] != names[0] {
			continue
		}
		for _, name := range names[1:] {
			items = append(items, renamed(c, names[0], name))
		}
	}
	spec["containers"] = items
}

// ownVolume begins the names of volumes that one payload container has; its name follows.
const ownVolume = "shm-"

// renamed is a deep copy of a payload container under another name, which also stands in its arguments, in the
// annotation that it reads, and in the names of its own volumes; or of such a volume.
func renamed(container map[string]any, from, to string) map[string]any {
	text, err := json.Marshal(container)
	if err != nil {
		panic(err) // it came out of JSON
	}
	s := strings.NewReplacer(
		`"name":"`+from+`"`, `"name":"`+to+`"`,
		"/control/"+from+`"`, "/control/"+to+`"`,
		"nonce-"+from+"'", "nonce-"+to+"'",
		`"`+ownVolume+from+`"`, `"`+ownVolume+to+`"`,
	).Replace(string(text))
	var out map[string]any
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		panic(err)
	}
	return out
}

// stockStarter is the configuration of a startd that runs HTCondor's own starter.
const stockStarter = "STARTER = $(SBIN)/condor_starter\n"

// stockPlan is the glidein without payload containers, whose startd runs the stock starter. A partitionable slot there has
// a CPU for each payload container of ours, so both run as many jobs at once if each requests one.
func (p *pool) stockPlan(node int) plan {
	return plan{
		pod: podOn(node, stockPod), source: "glidein", node: node, configMap: "stock-config",
		config: p.ownNetwork(node, podOn(node, stockPod)) + p.executionPoint() + p.cutSlots(p.settings.Slots) + stockStarter,
		images: map[string]string{"prepare": p.images["condor"], pilotContainer: p.images["condor"]},
		keep:   func(kind string) bool { return kind == "ServiceAccount" },
		edit: func(pod map[string]any) {
			spec := child(pod, "spec")
			var kept []any
			for _, c := range list(spec, "containers") {
				if c["name"] == pilotContainer {
					kept = append(kept, c)
				}
			}
			spec["containers"] = kept
			p.reachWeb(spec)
			for _, c := range list(spec, "initContainers") {
				dropMount(c, "podstarter-bin")
			}
		},
	}.ownNames()
}

// dropMount takes the mount of a volume away from a container.
func dropMount(container map[string]any, volume string) {
	var kept []any
	for _, m := range list(container, "volumeMounts") {
		if m["name"] != volume {
			kept = append(kept, m)
		}
	}
	container["volumeMounts"] = kept
}
