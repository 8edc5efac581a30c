//go:build tools

// Package components names the program of the Versity S3 Gateway that integration/pool builds.
package components

import _ "github.com/versity/versitygw/cmd/versitygw"
