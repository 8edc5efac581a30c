package template

import (
	"testing"

	"podstarter/provisioner/settings/settingstest"
)

func TestPage(t *testing.T) {
	settingstest.Check(t, "../../docs/admin/provisioner.md", "## Templates", file{})
}
