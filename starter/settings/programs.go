package settings

import (
	"strings"
	"time"

	"podstarter/condor/job"
)

// Programs are the programs by which a site prepares and tidies the places of a
// job: the pilot container and the payload container. An empty path is none.
type Programs struct {
	Setup, Teardown                   string // in the pilot container
	ContainerSetup, ContainerTeardown string
	As                                string // in the payload container: one of the three below
	Limit                             time.Duration
}

// Values of POD_STARTER_CONTAINER_SCRIPTS_AS.
const (
	ScriptsAsPayload     = "payload"
	ScriptsAsRoot        = "root"
	ScriptsAsRootInImage = "root-in-image"
)

// programs reads the knobs and checks that the programs exist. Their kind is
// checked when they run.
func (r *reader) programs() Programs {
	p := Programs{
		Setup: r.text(KnobSetup), Teardown: r.text(KnobTeardown),
		ContainerSetup: r.text(KnobContainerSetup), ContainerTeardown: r.text(KnobContainerTeardown),
		As: strings.ToLower(r.text(KnobContainerScriptsAs)), Limit: r.seconds(KnobScriptTimeout, 1, 3600),
	}
	for _, program := range []struct {
		knob Knob
		path string
	}{{KnobSetup, p.Setup}, {KnobTeardown, p.Teardown}, {KnobContainerSetup, p.ContainerSetup}, {KnobContainerTeardown, p.ContainerTeardown}} {
		if program.path != "" {
			r.problem(job.CheckProgram(program.knob.Name, program.path))
		}
	}
	switch p.As {
	case ScriptsAsPayload, ScriptsAsRoot, ScriptsAsRootInImage:
	default:
		r.bad(KnobContainerScriptsAs, "%q is none of %s, %s, %s", p.As, ScriptsAsPayload, ScriptsAsRoot, ScriptsAsRootInImage)
	}
	return p
}
