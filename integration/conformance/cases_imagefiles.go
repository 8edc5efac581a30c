package conformance

import (
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// Images that are files, in submit descriptions.
const (
	busyboxFile = "$(IMAGE_FILES)/busybox.sif"
	debianFile  = "$(IMAGE_FILES)/debian.sif"
	probeFile   = "$(IMAGE_FILES)/probe.sif"
	hostileFile = "$(IMAGE_FILES)/hostile.sif"
	definedFile = "$(IMAGE_FILES)/defined.sif" // from a definition of its own
	directory   = harness.ImageDirectories + "/busybox"
)

// imageFiles are what the cases need.
var imageFiles = []harness.ImageFile{
	{Name: "busybox.sif"}, {Name: "debian.sif"}, {Name: "probe.sif"}, {Name: "hostile.sif"},
	{Name: "busybox", Options: []string{"--sandbox"}},
	{Name: "defined.sif", Definition: `Bootstrap: docker
From: IMAGE_debian
%environment
    export GREETING="hello from the image"
    export OVERRIDE=image
    export ALSO="${ALSO:-image}"
    export PATH="/opt/tool/bin:$PATH"
%runscript
    echo "runscript $# $*: $GREETING"
    exit 5
%labels
    Author conformance
%setup
    cd "$APPTAINER_ROOTFS"
    mkdir -p opt/tool/bin closed
    printf '#!/bin/sh\necho tool "$@"\n' >opt/tool/bin/tool
    echo secret >closed/file
    chmod 755 opt/tool/bin/tool
    chmod u+s bin/bash
    chmod 700 closed
    ln -s /opt/tool srv/link
`},
}

// webImage is an image that the web server has.
const webImage = "image-files/busybox.sif"

var imageFilesSetup = Setup{
	Execute:  "SINGULARITY_BIND_EXPR = TARGET.SingularityBind\nFILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), " + programs + "/osdf_plugin\n",
	Programs: []harness.File{{Name: "osdf_plugin", Mode: 0o755, Content: []byte(harness.OSDFPlugin)}},
}

// ofFile begins the names of cases whose image is a file.
const ofFile = "file-"

// NeedsImageFiles tells whether one of the cases has an image that is a file.
func NeedsImageFiles(cases []Case) bool {
	return slices.ContainsFunc(cases, func(c Case) bool { return strings.HasPrefix(c.Name, ofFile) })
}

// NeedsCarrier tells whether one of the cases has an image that the kubelet cannot pull: a file, or one for which the job
// sends credentials.
func NeedsCarrier(cases []Case) bool {
	return NeedsImageFiles(cases) || slices.ContainsFunc(cases, func(c Case) bool { return strings.Contains(c.Submit, "docker_send_credentials") })
}

// inFile makes a case one of a job whose image is transferred with it, beside Apptainer.
func inFile(image string, c Case) Case {
	c = beside(harness.StockApptainer, ofFile, "universe = container\ncontainer_image = "+image+"\n", c)
	c.Fleeting = slices.Concat(c.Fleeting, byChance("the seconds in which the image was transferred, of which stock counts those that began", "transferinputstats"))
	return c
}

// chance adds what the case leaves to chance.
func (c Case) chance(why string, names ...string) Case {
	c.Fleeting = slices.Concat(c.Fleeting, byChance(why, names...))
	return c
}

// imageFileJobCases are those of any image, in one that is a file.
func imageFileJobCases() []Case {
	var all []Case
	for _, c := range slices.Concat(imageCommandCases, imageEnvironmentCases, imageSightCases, imageEndCases, imageOrderCases, imageFileCases, imageVisitCases) {
		if c.Name == "script" || c.Name == "program-relative" {
			c = whoAmI(c) // the program's path is printed
		}
		c = inFile(busyboxFile, c)
		if !slices.Contains([]string{"file-script", "file-program", "file-facts", "file-environment", "file-user", "file-files", "file-target-dir", "file-vacated", "file-checkpoint"}, c.Name) {
			c = c.onRequest()
		}
		all = append(all, c)
	}
	return all
}

// imageFilesCases are jobs whose image is a file or a directory, beside the stock starter with Apptainer.
var imageFilesCases = slices.Concat(imageFileJobCases(), []Case{
	inFile(debianFile, shell("debian", "a script in an image with a shell of its own", "bash -c 'echo ${BASH_VERSION%%.*}'; cat /image-name\n", "")),
	inFile(definedFile, Case{Name: "runscript", Shows: "the image's own command, since the job names none", Submit: "executable =\narguments = a b\noutput = out\nerror = err"}),
	inFile(definedFile, shell("image-environment", "the image's variables, and those of the job, which win",
		`for v in GREETING OVERRIDE ALSO PATH LD_LIBRARY_PATH LANG APPTAINER_NAME SINGULARITY_NAME APPTAINER_COMMAND APPTAINER_ENVIRONMENT APPTAINER_APPNAME APPTAINER_EVIL INSIDE; do eval "echo $v=\$$v"; done; basename "$APPTAINER_CONTAINER"; tool ran
`, `environment = "OVERRIDE=job ALSO=job APPTAINER_EVIL=1 APPTAINERENV_INSIDE=yes"`)),
	inFile(definedFile, shell("longer-path", "Apptainer's variables that make PATH longer", "echo $PATH; echo ${PREPEND_PATH-unset}\n",
		`environment = "APPTAINERENV_PREPEND_PATH=/pre APPTAINERENV_APPEND_PATH=/post"`)),
	inFile(busyboxFile, shell("bind", "places under another name, and one that no machine has", "ls /other >/dev/null && echo given; cat /missing 2>/dev/null || echo left out\n",
		`+SingularityBind = "/sys/devices:/other, /no/such/place:/missing, /etc/hosts"`)),
	inFile(definedFile, inImage("tool", "a program that only the image's PATH finds", "/bin/sh", `arguments = "-c 'tool a'"`)),
	inFile(definedFile, shell("labels", "labels, and what a root user's file and a set-user-ID program of the image are to the job", "grep -o conformance /.singularity.d/labels.json; cat /closed/file; cat /srv/link/bin/tool; bash -p -c 'id -u' | grep -c '^0$'\n", "")),
	inFile(probeFile, orderedAway(Case{Name: "no-shell", Shows: "an image without a shell, and a transferred program", Submit: "arguments = out=hello\noutput = out\nerror = err"})),
	inFile(hostileFile, Case{Name: "configured", Shows: "the image's own environment, user and working directory", Submit: "arguments = facts\noutput = out", Facts: true}),
	inFile("osdf:///$(WEB_HOST)/"+webImage, shell("osdf", "an image that a plugin fetches", "cat /image-name; echo $APPTAINER_NAME\n", "")).chance("the shadow draws it", "pelicanretrydelay"),
	inFile("broken.sif", orderedAway(Case{Name: "broken", Shows: "a file that is no image", Submit: "arguments = out=ran\noutput = out", Files: []harness.File{{Name: "broken.sif", Content: []byte("no image\n")}}})),
	inFile("missing.sif", orderedAway(Case{Name: "missing", Shows: "a file that is not there", Submit: "arguments = out=ran\noutput = out\ntransfer_container = False"})),
	inFile(directory, shell("directory", "a directory with an image's files", "cat /image-name; echo $APPTAINER_NAME\n", "transfer_container = False")),
})
