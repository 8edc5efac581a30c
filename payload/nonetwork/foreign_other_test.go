//go:build !amd64

package nonetwork_test

// foreign are calls of other architectures; a program cannot make any here.
var foreign map[string]func()
