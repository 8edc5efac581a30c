// Package guest makes and runs machines on this one: User-Mode Linux kernels, each an ordinary process of the host, with
// cgroup v2 as their only hierarchy. What happens inside is the package guestinit's.
package guest

import (
	"encoding/json"
	"fmt"
	"os"

	"podstarter/integration/pool/internal/statedir"
)

// HostRoot is where a guest sees the host's root directory, read-only.
const HostRoot = "/host"

// A Config is what a guest's first process needs to know. It is a file of the host, which the guest reads through its
// host file system.
type Config struct {
	// Hostname is the guest's name.
	Hostname string
	// Root is the directory of the host with the guest's root file system. The guest never writes to it.
	Root string
	// Shares are the host's directories that the guest has at the same paths.
	Shares []Share
	// Private are directories that are the guest's own, on its disk, at paths which exist on the host.
	Private []string
	// Network is the guest's place in a network; nil means none but loopback.
	Network *Network
	// Args is the command that the first process starts. The guest powers off when it ends.
	Args []string
	// Env are settings of the command's environment.
	Env []string
}

// A Share is a directory of the host at the same path of a guest.
type Share struct {
	Path string
	Mode ShareMode
}

// ShareMode says who sees what a guest writes to a share.
type ShareMode string

// The modes.
const (
	// ReadOnly shares cannot be written to.
	ReadOnly ShareMode = "read-only"
	// ReadWrite shares are the same on both sides. Locks on files are not.
	ReadWrite ShareMode = "read-write"
	// Layered shares can be written to; the changes stay in the guest.
	Layered ShareMode = "layered"
)

// A Network is an address of a guest.
type Network struct {
	// Address has the length of its prefix behind a slash.
	Address string
	// MTU is the greatest size of a packet in bytes; 0 is the device's default.
	MTU int
}

// Read reads the file that Write wrote.
func Read(path string) (Config, error) {
	var c Config
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the guest's configuration: %w", err)
	}
	return c, nil
}

// Write writes the configuration to path.
func (c Config) Write(path string) error { return statedir.WriteJSON(path, c) }
