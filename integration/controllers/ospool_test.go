//go:build pool

package controllers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// ospool is the overlay for OSPool sites, as a site would use it: with variables of the OSPool's own container, with CVMFS, for which a
// directory of the node stands in, and with sandboxes in /pilot.
func ospool(cvmfs string) site {
	registry, _, _ := strings.Cut(pool.Image("busybox"), "/busybox")
	variables := []object{}
	for name, value := range map[string]string{
		"GLIDEIN_Site": "Test", "GLIDEIN_ResourceName": "Test_EP", "GLIDEIN_Start_Extra": `TARGET.Cmd =!= "/bin/unwanted"`, "POOL": "cm.example.org",
		"OSG_DEFAULT_CONTAINER_DISTRIBUTION": "100%__" + pool.Image("debian"), "EXTRA_JOB_ENV": "SITE_VARIABLE=yes", "NUM_CPUS": "99",
	} {
		variables = append(variables, object{"name": name, "value": value})
	}
	elsewhere := []object{{"mountPath": "/var/lib/condor/execute", "$patch": "delete"}, {"name": "execute", "mountPath": "/pilot"}}
	return site{
		source: "ospool", kind: "Deployment", env: variables,
		mounts:        append([]object{{"name": "cvmfs", "mountPath": "/cvmfs", "readOnly": true}}, elsewhere...),
		payloadMounts: append([]object{{"name": "cvmfs", "mountPath": "/cvmfs", "readOnly": true}}, elsewhere...),
		volumes:       []object{{"name": "cvmfs", "hostPath": object{"path": cvmfs, "type": "Directory"}}},
		config: []string{
			"EXECUTE = /pilot/jobs",
			"POD_STARTER_CARRIER_IMAGE = " + pool.Image("empty"),
			"POD_STARTER_IMAGE_MIRRORS = hub.opensciencegrid.org/htc=" + registry,
			"FILETRANSFER_PLUGINS = $(FILETRANSFER_PLUGINS), /cvmfs/site/osdf_plugin",
			"STARTD_CRON_OSPOOL_PERIOD = 2s",
			"STARTD_CRON_OSPOOL_ENV = \"OSG_NODE_CHECK=/cvmfs/site/node-check OSPOOL_CVMFS_REPOSITORIES='images.example.org none.example.org'\"",
			"UPDATE_INTERVAL = 5",
		},
	}
}

// cvmfsDirectory is what stands in for CVMFS: an image that is a directory, the plugin, and the site's check, which fails while there is
// a file beside it.
func cvmfsDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(pool.State, "cvmfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(probe.Link)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"images.example.org/tool/image-name":  "tool of CVMFS\n",
		"images.example.org/tool/usr/bin/job": string(program),
		"site/osdf_plugin":                    harness.OSDFPlugin,
		"site/node-check":                     "#!/bin/sh\nif [ -e /cvmfs/site/broken ]; then echo 'scratch is full'; exit 1; fi\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOSPool: the federation's jobs, with the lines that its documentation has, run in the overlay's pod: an image by osdf:// and a
// plugin, one that is transferred, one by its path in CVMFS, which is there or which a registry has, and none. What its jobs ask for is in
// the slot's ad. Jobs that the site does not want, or that only Apptainer on the node could run, are not tried.
func TestOSPool(t *testing.T) {
	ctx := soon(t)
	cvmfs := cvmfsDirectory(t)
	s := ospool(cvmfs)
	s.apply(ctx, t)
	s.slots(ctx, t, 1)

	fixture, err := os.ReadFile("../../unpacker/testdata/apptainer.sif")
	if err != nil {
		t.Fatal(err)
	}
	web, err := pool.Web()
	if err != nil {
		t.Fatal(err)
	}
	if err := web.Put("ospool/my-image.sif", fixture); err != nil {
		t.Fatal(err)
	}
	busybox := pool.Image("busybox")
	tag := busybox[strings.LastIndex(busybox, ":")+1:]
	const project = "+ProjectName = \"Test\"\n"
	run := func(name, arguments, commands string, files ...harness.File) harness.Job {
		t.Helper()
		sub := harness.Submission{Name: "-" + name, Files: append(files, probe), Commands: "executable = " + harness.ProbeName + "\narguments = \"" + arguments + "\"\n" + web.Macros(commands)}
		for line := range strings.Lines(commands) {
			if key, value, _ := strings.Cut(line, "="); strings.EqualFold(strings.TrimSpace(key), "requirements") {
				sub.Requirements = strings.TrimSpace(value)
				continue
			}
			sub.Commands += line
		}
		return s.submitPlain(ctx, t, sub)[0]
	}
	type want struct {
		job    harness.Job
		output string // contained in it
	}
	wanted := map[string]want{
		"osdf":                  {run("osdf", "facts", project+"container_image = osdf:///$(WEB_HOST)/ospool/my-image.sif\n"), "GLIDEIN_Site=Test"},
		"transferred":           {run("transferred", "facts", project+"container_image = my-image.sif\n", harness.File{Name: "my-image.sif", Content: fixture}), "SITE_VARIABLE=yes"},
		"by its attribute":      {run("attribute", "facts", project+"+SingularityImage = \"./my-image.sif\"\ntransfer_input_files = my-image.sif\nRequirements = HAS_SINGULARITY == TRUE && SINGULARITY_CAN_USE_SIF == TRUE\n", harness.File{Name: "my-image.sif", Content: fixture}), "APPTAINER_NAME=my-image.sif"},
		"unpacked in CVMFS":     {run("unpacked", "cat=/image-name", project+"container_image = /cvmfs/images.example.org/tool\n"), "tool of CVMFS"},
		"of CVMFS, in registry": {run("registry", "cat=/image-name", project+"universe = container\ncontainer_image = /cvmfs/singularity.opensciencegrid.org/htc/busybox:"+tag+"\n"), "busybox"},
		"old form": {run("old-form", "cat=/image-name", project+"+SingularityImage = \"/cvmfs/singularity.opensciencegrid.org/htc/busybox:"+tag+
			"\"\nRequirements = HAS_SINGULARITY == True && OSG_HOST_KERNEL_VERSION >= 31000\n"), "busybox"},
		"docker://": {run("docker", "cat=/image-name", project+"container_image = docker://"+busybox+"\n+SingularityBindCVMFS = False\n"), "busybox"},
		"no image":  {run("no-image", "cat=/image-name", project+"requirements = (Arch == \"X86_64\" || Arch == \"aarch64\") && HAS_CVMFS_images_example_org\n+JobDurationCategory = \"Long\"\n+DESIRED_Sites = \"Other,Test\"\n"), "debian"},
	}
	unwanted := map[string]harness.Job{
		"no project":     run("no-project", "facts", ""),
		"another site":   run("another-site", "facts", project+"+DESIRED_Sites = \"Other\"\n"),
		"not this site":  run("not-this-site", "facts", project+"+UNDESIRED_Sites = \"Test,Other\"\n"),
		"oras":           run("oras", "facts", project+"+SingularityImage = \"oras://registry.example.org/a:1\"\n"),
		"no such CVMFS":  run("no-such-cvmfs", "facts", project+"requirements = HAS_CVMFS_none_example_org\n"),
		"the site's own": run("unwanted", "facts", project+"transfer_executable = False\nexecutable = /bin/unwanted\n"),
	}
	for name, w := range wanted {
		t.Run(name, func(t *testing.T) {
			ended(ctx, t, w.job, 1)
			out, err := w.job.Output("out.0")
			if err != nil || !strings.Contains(out, w.output) {
				t.Errorf("%v, and the output lacks %q:\n%.2000s", err, w.output, out)
			}
		})
	}
	s.attribute(ctx, t, `GLIDEIN_Site == "Test" && GLIDEIN_ResourceName == "Test_EP" && OSG_NODE_VALIDATED && HasSingularity && HAS_SINGULARITY && HAS_CVMFS_images_example_org && `+
		`!HAS_CVMFS_none_example_org && regexp("^slot1@Test-EP-podstarter-glidein-", Name) && GLIDEIN_ToDie - GLIDEIN_ToRetire == 86400 && isString(K8SPhysicalHostName) && Cpus == 1`)

	// What the site's own check finds wrong keeps jobs away, until it is well again.
	if err := os.WriteFile(filepath.Join(cvmfs, "site", "broken"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.attribute(ctx, t, `!OSG_NODE_VALIDATED && OSG_NODE_WARNINGS == "scratch is full" && !(START ?: true)`)
	if err := os.Remove(filepath.Join(cvmfs, "site", "broken")); err != nil {
		t.Fatal(err)
	}
	mended := run("mended", "cat=/image-name", project)
	ended(ctx, t, mended, 1)
	for name, job := range unwanted {
		if events, err := job.Events(); err != nil || often(events, harness.EventExecute)+often(events, harness.EventHeld) > 0 {
			t.Errorf("%s: the job was tried: %v\n%s", name, err, harness.Headlines(events))
		}
	}
}

// attribute waits until a slot of the site has an ad with which the expression is true.
func (s site) attribute(ctx context.Context, t *testing.T, expression string) {
	t.Helper()
	own := fmt.Sprintf("%s =?= %q", attribute, s.mark(t))
	err := harness.Poll(ctx, "a slot with "+expression, func() (bool, error) {
		out, err := pool.AP(ctx, "condor_status", "-af", "Name", "-constraint", own+" && "+expression)
		return strings.TrimSpace(out) != "", err
	})
	if err != nil {
		ad, _ := pool.AP(ctx, "condor_status", "-long", "-constraint", own)
		t.Fatalf("%v; the ad is\n%s", err, ad)
	}
}
