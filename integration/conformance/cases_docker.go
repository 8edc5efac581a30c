package conformance

import (
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// dockerCases are jobs with images beside the stock starter with Docker.
var dockerCases = slices.Concat(everywhereCases(inDocker), badImageCases(inDocker), credentialCases(), dockerOwnCases, []Case{
	onDocker("container-registry", "the container universe with an image from a registry", "container_image = docker://"+busybox, "arguments = facts\noutput = out").facts(),
	onDocker("container-docker-image", "the container universe with docker_image", "docker_image = "+busybox, "arguments = out=ran\noutput = out"),
	onDocker("container-no-image", "the container universe, and an image that the registry does not have", "container_image = docker://$(REGISTRY)/podstarter/none:1", ""),
	onDocker("container-scratch", "mount_under_scratch", "container_image = docker://"+busybox, "mount_under_scratch = /home,/opt\nexecutable = /bin/sh\ntransfer_executable = False\noutput = out\narguments = \"-c 'for d in /home /opt /tmp; do touch $d/x && echo $d; done'\""),
	onDocker("container-scratch-full", "mount_under_scratch, and the image has files there", "container_image = docker://"+busybox, "mount_under_scratch = /bin\narguments = out=ran\noutput = out"),
})

// onDocker is a case of the container universe beside Docker.
func onDocker(name, shows, image, submit string) Case {
	return beside(harness.StockDocker, "docker-", "universe = container\n"+image+"\n", Case{Name: name, Shows: shows, Submit: submit})
}

// facts says that the output is the probe's.
func (c Case) facts() Case {
	c.Facts = true
	return c
}

// dockerOwnCases are about what only Docker has: entry points and the commands of submit descriptions for them.
var dockerOwnCases = []Case{
	// A shell that reads nothing: Docker gives it no standard input.
	inDocker(busybox, Case{Name: "default-command", Shows: "no executable: the image's own command", Submit: "executable =\ntransfer_executable = False\noutput = out\nerror = err"}),
	inDocker(probing, Case{Name: "default-entrypoint", Shows: "no executable: the image's own entry point, with the job's arguments",
		Submit: "executable =\ntransfer_executable = False\narguments = out=hello exit=4\noutput = out\nerror = err"}),
	inDocker(probing, Case{Name: "entrypoint", Shows: "a program of the image, which has an entry point too",
		Submit: "executable = /probe\ntransfer_executable = False\narguments = out=hello\noutput = out\nerror = err"}),
	inDocker(probing, Case{Name: "entrypoint-transferred", Shows: "a transferred program, and an image with an entry point",
		Submit: "arguments = out=hello\noutput = out\nerror = err"}),
	inDocker(line, Case{Name: "default-line", Shows: "no executable: the image's own entry point, a line for a shell, and its CMD",
		Submit: "executable =\ntransfer_executable = False\noutput = out\nerror = err"}),
	inDocker(line, Case{Name: "entrypoint-line", Shows: "a program of the image, whose entry point is a line for a shell",
		Submit: "executable = /bin/busybox\ntransfer_executable = False\narguments = a b\noutput = out\nerror = err"}),
	inDocker(probing, Case{Name: "override", Shows: "docker_override_entrypoint, with a program of the image",
		Submit: "executable = /probe\ntransfer_executable = False\ndocker_override_entrypoint = True\narguments = facts\noutput = out\nerror = err", Facts: true}),
	inDocker(hostile, Case{Name: "override-transferred", Shows: "docker_override_entrypoint, with a transferred program: environment, user and directory of the image",
		Submit: "docker_override_entrypoint = True\narguments = facts\noutput = out", Facts: true}),
	inDocker(busybox, relativeDirectory),
	inDocker(busybox, Case{Name: "oom", Shows: "more memory than the slot has", Submit: "arguments = out=began memory=700 forever\noutput = out"}),
	inDocker(busybox, network("network-none", "docker_network_type = none", "none")),
	inDocker(busybox, network("network-host", "docker_network_type = host", "host")),
	inDocker(busybox, network("network-nat", "docker_network_type = nat", "nat")),
	inDocker(busybox, reaching("reach-none", "docker_network_type = none: who can be reached", "none")),
	inDocker(busybox, reaching("reach-host", "the same with host", "host")),
	inDocker(busybox, reachingBySession),
	inDocker(busybox, Case{Name: "service", Shows: "container_service_names: a port of the job", Submit: "container_service_names = web\nweb_container_port = 8080\narguments = sleep=4s\n"}),
	inDocker(busybox, Case{Name: "pull-always", Shows: "docker_pull_policy = always", Submit: "docker_pull_policy = always\narguments = out=ran\noutput = out"}),
	inDocker(busybox, Case{Name: "pull-other", Shows: "a pull policy that there is not", Submit: "docker_pull_policy = sometimes\narguments = out=ran\noutput = out"}),
	inDocker("docker://"+busybox, Case{Name: "scheme", Shows: "docker_image with docker://", Submit: "arguments = out=ran\noutput = out"}),
	inDocker(busybox, Case{Name: "advertised", Shows: "what slots say of jobs with images", Submit: "arguments = out=ran\noutput = out",
		Steps: []Step{Ends(), slotsSay("HasDocker", "HasDockerURL", "HasContainer"), slotsSay("DockerVersion")}}),
	inDocker(empty, Case{Name: "empty-image", Shows: "an image without a file, and a transferred program", Submit: "arguments = out=ran\noutput = out\nerror = err"}),
	inDocker("$(IMAGE_pause)", Case{Name: "small-image", Shows: "an image with one file, and a transferred program", Submit: "docker_override_entrypoint = True\narguments = out=ran\noutput = out"}),
	inDocker(busybox, chirping("chirp-host", "chirp, from the network of the machine", "docker_network_type = host\n")),
}

// reaching is a case of a job that asks the registry, which everybody reaches who has a network.
func reaching(name, shows, kind string) Case {
	return shell(name, shows, "if nc -w 5 ${1%:*} ${1#*:} </dev/null 2>/dev/null; then echo reached; else echo cut off; fi\n",
		"arguments = $(REGISTRY)\ndocker_network_type = "+kind)
}

// reachingBySession has the job's owner ask the registry from a session, in a job without network.
var reachingBySession = Case{
	Name: "ssh-none", Shows: "condor_ssh_to_job: who can be reached from a job without network", Fleeting: byTheClock,
	Submit: "executable = linger\narguments = $(REGISTRY)\ndocker_network_type = none\noutput = out\ntransfer_output_files = data.txt\n",
	Files: []harness.File{Script("linger", `echo $1 >address
echo some data >data.txt
printf 'lingers' >/proc/$$/comm
until [ -e go ]; do sleep 0.2; done
`)},
	Steps: []Step{
		Runs("lingers"), login("<job> 'read a <address; echo asks ${a%:*}; if nc -w 5 ${a%:*} ${a#*:} </dev/null 2>/dev/null; then echo reached; else echo cut off; fi'"),
		EP("touch", "<scratch>/go"), Ends(),
	},
}

// network is a case of a job that lists its interfaces.
func network(name, shows, kind string) Case {
	return shell(name, shows, interfaces+"\n", "docker_network_type = "+kind)
}

// slotsSay are these attributes of the execution point's slots, which say the same.
func slotsSay(attributes ...string) Step {
	return EP("sh", "-c", `condor_status -direct "$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME)" -af:ln $0 | sort -u`, strings.Join(attributes, " "))
}
