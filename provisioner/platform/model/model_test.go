package model

import (
	"testing"
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/platform/platformtest"
)

type world struct{ *Model }

func (w world) Platform() platform.Platform { return w.Model }
func (w world) Restart() platform.Platform  { return w.Model }

func TestPlatform(t *testing.T) {
	platformtest.Run(t, func(*testing.T) platformtest.World { return world{New(time.Now)} })
}
