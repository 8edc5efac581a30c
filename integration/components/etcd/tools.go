//go:build tools

// Package components names the program of etcd that integration/pool builds.
package components

import _ "go.etcd.io/etcd/server/v3"
