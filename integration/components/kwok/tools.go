//go:build tools

// Package components names the program of KWOK that integration/pool builds.
package components

import _ "sigs.k8s.io/kwok/cmd/kwok"
