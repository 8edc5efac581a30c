package attacks

import (
	"fmt"
	"slices"

	"podstarter/integration/harness"
)

// A Pod is an execution point that lacks some defences in its manifest or in what is there
// before its startd begins.
type Pod struct {
	Name string
	In   []Mode // nil: in all modes
	Off  []string
	// Spares are payload containers that are more than the slots: some are made ahead for the next job.
	Spares int
}

// Pods by what is off in them, or there besides.
const (
	closedPod   = "attacked"
	sparesPod   = "attacked-spares"
	openPod     = "attacked-open"
	togetherPod = "attacked-together"
)

// Pods are the ones that are attacked.
var Pods = []Pod{
	{Name: closedPod},
	{Name: sparesPod, In: hasRoot, Spares: 1},
	{Name: openPod, Off: []string{Escalation, FewerRights, ReadOnly, NoToken, ClosedParent, OneContainer}},
	// In mode unshared it would be a pod of mode shared.
	{Name: togetherPod, In: rootless, Off: []string{Namespace, OneContainer}},
}

// podCalled finds one by its name.
func podCalled(name string) Pod {
	for _, p := range Pods {
		if p.Name == name {
			return p
		}
	}
	panic("no pod " + name)
}

// A Setting is an execution point with some defences off.
type Setting struct {
	Name   string
	In     []Mode // nil: in all modes
	Pod    string
	Off    []string
	Also   []string // attacks that are tried in such settings alone
	Not    []string // attacks that are not tried, since something else holds them off
	Victim bool     // a neighbour runs, if there is a second slot
	Second bool     // another job follows in the same slot
	Killed bool     // a starter is killed
	Pipe   bool     // a job sends a named pipe
	Guest  bool     // it is also tried in a guest (chosenSettings)
}

// Settings are all that every attack is tried in, pod by pod in this order.
var Settings = []Setting{
	{
		Name: "as deployed", Pod: closedPod, Victim: true, Second: true, Killed: true, Pipe: true, Guest: true,
		Also: []string{ForkBomb, Behind},
	},
	// The control directories, wrappers and files of containers that are made ahead are there, too.
	{Name: "as deployed, with spares", In: hasRoot, Pod: sparesPod, Victim: true, Killed: true},
	{
		Name: "careless wrapper, one user", In: hasRoot, Pod: closedPod, Victim: true, Second: true, Pipe: true,
		Off: []string{
			NoNewPrivs, Groups, Descriptors, Environment, GoSettings, ClosedControl, Peer, AllSignals, NoNetwork,
			// Without the next a neighbour of the same user would be taken for an earlier job.
			Leftovers, MakeWay, Vacant,
			Identity, Kinds, SlotUsers, Secrets, PluginEnviron, PluginOutput, PluginRemains,
			HookUser, OwnerOnly, SocketPeer,
		},
	},
	{
		Name: "user that can be given up", In: hasRoot, Pod: closedPod, Second: true, Pipe: true,
		Off: []string{User, Leftovers, Beneath, NoWaiting, Sweep, Dismissal},
	},
	{
		Name: "root with the wrapper's capabilities", In: hasRoot, Pod: closedPod, Killed: true,
		Off: []string{User, NoRights, DeadMan},
	},
	{
		Name: "open pod", In: hasRoot, Pod: openPod, Victim: true,
		Off: []string{NoRights, Peer, PluginUser, HookGroup, CommandKeys, Cookie},
	},
	{Name: "open pod, user that can be given up", In: hasRoot, Pod: openPod, Off: []string{User}},
	{
		Name: "open pod, careless programs", In: hasRoot, Pod: openPod, Killed: true, Guest: true,
		Off: []string{User, NoRights, DeadMan, Identity, Beneath, Sweep},
	},
	{
		Name: "open pod and control directory", In: hasRoot, Pod: openPod, Guest: true,
		Off: []string{NoNewPrivs, ClosedControl, HookEnviron, VisitUser, CommandKeys, OwnerOnly, TaskLimit, Vacant}, Also: []string{ForkBomb, Behind},
	},
	{
		Name: "open pod and wrapper", In: hasRoot, Pod: openPod, Victim: true, Second: true, Pipe: true,
		Off: []string{ClosedControl, Peer, SandboxMode, MakeWay, AllSignals, Kinds, NoWaiting, Dismissal},
	},

	{
		Name: "careless wrapper", In: rootless, Pod: closedPod, Second: true, Pipe: true,
		Off: []string{
			NoNewPrivs, Groups, Descriptors, Environment, GoSettings, AllSignals, NoNetwork, Leftovers, Kinds, Secrets,
			PluginEnviron, PluginOutput, PluginRemains, OwnerOnly, Cookie, Confined,
		},
	},
	{
		Name: "group and control directory", In: rootless, Pod: closedPod, Victim: true,
		Off: []string{Groups, ClosedControl, JobPlugins, HookEnviron, CommandKeys, OwnerOnly, TaskLimit, Vacant}, Also: []string{ForkBomb, Behind},
	},
	{
		Name: "user that can be given up", In: rootless, Pod: closedPod, Second: true, Pipe: true,
		Off: []string{User, MakeWay, NoWaiting, Sweep, Dismissal, JobPlugins},
	},
	{
		Name: "root with the wrapper's capabilities, and careless with plugins", In: rootless, Pod: closedPod, Victim: true, Killed: true,
		Off: []string{User, NoRights, Beneath, DeadMan, JobPlugins, Confined, PluginEnviron, PluginOutput, PluginRemains},
	},
	{
		Name: "open pod", In: rootless, Pod: openPod, Victim: true,
		// A neighbour of the same user would be taken for an earlier job.
		Off: []string{NoRights, Leftovers, MakeWay, CommandKeys, Confined},
	},
	{
		Name: "open pod and wrapper", In: rootless, Pod: openPod, Victim: true, Second: true, Pipe: true,
		// A filter of system calls needs no_new_privs.
		Off: []string{NoNewPrivs, NoNetwork, ClosedControl, Leftovers, MakeWay, AllSignals, Dismissal, Kinds, NoWaiting, JobPlugins, Confined},
	},
	{
		Name: "open pod, careless programs", In: rootless, Pod: openPod, Killed: true,
		Off: []string{User, Sweep, DeadMan},
	},
	{
		Name: "one PID namespace", In: rootless, Pod: togetherPod, Victim: true,
		// What kills the processes of the job's user would kill the pilot.
		Off: []string{ClosedControl, Sweep, DeadMan, Leftovers, MakeWay, JobPlugins},
		// The startd sees the job's processes, and finds them by their environment.
		Not: []string{Survivors},
	},
}

// off are all defences that the setting lacks in a mode that has them.
func (s Setting) off(mode Mode) []string {
	all := append(slices.Clone(podCalled(s.Pod).Off), s.Off...)
	return slices.DeleteFunc(all, func(name string) bool { return !in(mode, defence(name).In) })
}

// settingsOf are those of a mode.
func settingsOf(mode Mode) []Setting {
	return slices.DeleteFunc(slices.Clone(Settings), func(s Setting) bool { return !in(mode, s.In) })
}

// guestMode is the mode of the pool in a guest.
const guestMode = harness.Shared

// chosenSettings are those of a mode, or those that are tried in a guest as well, which has
// another kernel, cgroup v2 and later versions of the container runtime, and is slow: the
// pod as deployed, in which nothing gets through, and a setting for each attack that one of
// the node's defences holds off ([Defence.Node]), in which the attack gets through.
func chosenSettings(mode Mode, guest bool) []Setting {
	return slices.DeleteFunc(settingsOf(mode), func(s Setting) bool { return guest && !s.Guest })
}

// podsOf are those of a mode that some settings need.
func podsOf(mode Mode, settings []Setting) []Pod {
	return slices.DeleteFunc(slices.Clone(Pods), func(p Pod) bool {
		return !in(mode, p.In) || !slices.ContainsFunc(settings, func(s Setting) bool { return s.Pod == p.Name })
	})
}

// slots are the payload containers of the pod: one for the attacker, and one for its neighbour
// where the pod may have it.
func (p Pod) slots(mode Mode) []string {
	if mode == harness.Rootless && !slices.Contains(p.Off, OneContainer) {
		return []string{payloadContainer}
	}
	return []string{payloadContainer, payloadContainer + "-2"}
}

// containers are the payload containers of the pod, and those that are more than the slots.
func (p Pod) containers(mode Mode) []string {
	all := p.slots(mode)
	for range p.Spares {
		all = append(all, fmt.Sprintf("%s-%d", payloadContainer, len(all)+1))
	}
	return all
}
