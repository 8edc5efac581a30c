package podnet

import (
	"encoding/json"
	"fmt"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

// Verb is the program's own verb under which the container runtime runs it as a plugin.
const Verb = "pod-network"

// Plugin is the body of [Verb]: it tells the relay of a pod that other plugins have given a network, and of its end. It ends the process
// if it fails.
func Plugin() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }}, version.All, "the relay of a pool's pods")
}

// pluginConfig is what the plugin gets.
type pluginConfig struct {
	types.NetConf
	Network
}

func read(args *skel.CmdArgs) (conf pluginConfig, err error) {
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return conf, fmt.Errorf("reading the plugin's configuration: %w", err)
	}
	return conf, nil
}

func add(args *skel.CmdArgs) error {
	conf, err := read(args)
	if err != nil {
		return err
	}
	if err := version.ParsePrevResult(&conf.NetConf); err != nil {
		return fmt.Errorf("reading what the plugins before this one did: %w", err)
	}
	if err := conf.note(args.ContainerID, args.Netns); err != nil {
		return err
	}
	return types.PrintResult(conf.PrevResult, conf.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	conf, err := read(args)
	if err != nil {
		return err
	}
	return conf.forget(args.ContainerID)
}
