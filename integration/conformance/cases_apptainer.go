package conformance

import (
	"slices"

	"podstarter/integration/harness"
)

// apptainerCases are jobs with images beside the stock starter with Apptainer.
var apptainerCases = slices.Concat(everywhereCases(inApptainer), badImageCases(func(image string, c Case) Case { return inApptainer(image, orderedAway(c)) }), []Case{
	inApptainer(bare, orderedAway(Case{Name: "no-shell", Shows: "an image without a shell, and a transferred program", Submit: "arguments = out=hello\noutput = out\nerror = err"})),
	inApptainer(busybox, orderedAway(relativeDirectory)),
	inApptainer(empty, orderedAway(Case{Name: "empty-image", Shows: "an image without a file, and a transferred program", Submit: "arguments = out=ran\noutput = out\nerror = err"})),
	inApptainer(hostile, Case{Name: "configured", Shows: "the image's own environment, user and working directory", Submit: "arguments = facts\noutput = out", Facts: true}),
	inApptainer(busybox, Case{Name: "scratch", Shows: "mount_under_scratch", Submit: "mount_under_scratch = /home,/opt\nexecutable = /bin/sh\ntransfer_executable = False\noutput = out\narguments = \"-c 'for d in /home /opt /tmp; do touch $d/x && echo $d; done'\""}),
	beside("stock-apptainer", "apptainer-", "universe = vanilla\n+SingularityImage = \"docker://"+busybox+"\"\n", Case{Name: "vanilla", Shows: "a vanilla job with SingularityImage",
		Submit: "+WantContainer = True\narguments = out=ran\noutput = out"}).onRequest(),
	imaged("image-expr", "a vanilla job in the image that a knob chooses", "SINGULARITY_JOB = true\nSINGULARITY_IMAGE_EXPR = TARGET.ConformanceImage"),
	imaged("default-image", "a vanilla job in the site's default image", "USE_DEFAULT_CONTAINER = true\nDEFAULT_CONTAINER_IMAGE = TARGET.ConformanceImage"),
	imaged("default-image-unused", "a vanilla job, where the default image is not for it", "USE_DEFAULT_CONTAINER = TARGET.NotThere =?= true\nDEFAULT_CONTAINER_IMAGE = TARGET.ConformanceImage"),
})

// imaged is a case of a vanilla job that says which image the configuration chooses for it.
func imaged(name, shows, knobs string) Case {
	return sited(beside(harness.StockApptainer, "apptainer-", "universe = vanilla\n+ConformanceImage = \"docker://"+busybox+"\"\n", Case{Name: name, Shows: shows,
		Files: []harness.File{Script("job", "grep -qs busybox /image-name && echo in busybox || echo elsewhere\n")}, Submit: "executable = job\noutput = out"}), knobs).onRequest()
}
