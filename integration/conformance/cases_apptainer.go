package conformance

import "slices"

// apptainerCases are jobs with images beside the stock starter with Apptainer.
var apptainerCases = slices.Concat(everywhereCases(inApptainer), badImageCases(func(image string, c Case) Case { return inApptainer(image, orderedAway(c)) }), []Case{
	inApptainer(bare, orderedAway(Case{Name: "no-shell", Shows: "an image without a shell, and a transferred program", Submit: "arguments = out=hello\noutput = out\nerror = err"})),
	inApptainer(busybox, orderedAway(relativeDirectory)),
	inApptainer(empty, orderedAway(Case{Name: "empty-image", Shows: "an image without a file, and a transferred program", Submit: "arguments = out=ran\noutput = out\nerror = err"})),
	inApptainer(hostile, Case{Name: "configured", Shows: "the image's own environment, user and working directory", Submit: "arguments = facts\noutput = out", Facts: true}),
	inApptainer(busybox, Case{Name: "scratch", Shows: "mount_under_scratch", Submit: "mount_under_scratch = /home,/opt\nexecutable = /bin/sh\ntransfer_executable = False\noutput = out\narguments = \"-c 'for d in /home /opt /tmp; do touch $d/x && echo $d; done'\""}),
	beside("stock-apptainer", "apptainer-", "universe = vanilla\n+SingularityImage = \"docker://"+busybox+"\"\n", Case{Name: "vanilla", Shows: "a vanilla job with SingularityImage",
		Submit: "+WantContainer = True\narguments = out=ran\noutput = out"}).onRequest(),
})
