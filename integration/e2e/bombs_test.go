//go:build pool

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/starter/settings"
	"podstarter/unpacker/squashfs/squashfstest"
)

// bombPatience is how long these jobs may take, which wait for each other: two million files are written before there are too many.
const bombPatience = 8 * time.Minute

// TestImageFileBombs: image files that are made to fill disk, memory or time. Zeros take no room in the container, and the rest is held. The
// slot's next job runs.
func TestImageFileBombs(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root cannot write an image's files")
	}
	t.Cleanup(func() { reconfigure(t, false) })
	configure(t, image.KnobCarrier+" = "+pool.Image("empty"))
	reconfigure(t, true)
	const gib = 1 << 30
	bombs := map[string]struct {
		image   []byte
		subcode int // 0 for a job that runs
	}{
		"10 GiB of zeros":  {squashfstest.Zeros(10 * gib), 0},
		"30 GiB of zeros":  {squashfstest.Zeros(30 * gib), image.SubcodeFileTooLarge},
		"10,000,000 files": {squashfstest.Names(10_000_000), image.SubcodeFileTooLarge},
		"100,000 levels":   {squashfstest.Deep(100_000), image.SubcodeFileTooLarge},
	}
	jobs := map[string]harness.Job{}
	for name, b := range bombs {
		s := job("out=ran exit=3", "universe = container\ncontainer_image = bomb.sif\nrequest_disk = 400M")
		s.Name = "bomb-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
		s.Files = append(s.Files, harness.File{Name: "bomb.sif", Content: b.image})
		jobs[name] = submit(t, s)[0]
	}
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			end, err := jobs[name].WaitEnding(soon(t, bombPatience))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case b.subcode == 0 && (!end.Exited || end.Code != 3):
				t.Errorf("%s; want exit code 3", end)
			case b.subcode != 0 && (!end.Held || end.Code != holdInvalidDockerImage || end.Subcode != b.subcode):
				t.Errorf("%s; want held with code %d, subcode %d", end, holdInvalidDockerImage, b.subcode)
			}
		})
	}
	mustExit(t, submit(t, jobExit(4))[0], 4)
}

// TestHungConversion: a program that reads an image and does not end delays its job for as long as a binding may take, and not the slot. Nothing
// of it stays.
func TestHungConversion(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root cannot write an image's files")
	}
	const program, script = "/opt/podstarter/bin/condor_pod_unpacker", "#!/bin/sh\nexec sleep 86399\n"
	swap := `mv "$1" "$1.good" && cat >"$1" && chmod 755 "$1"`
	if out, err := pool.EPInput(t.Context(), side, strings.NewReader(script), "sh", "-c", swap, "swap", program); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	back := func() {
		if out, err := pool.EP(background(t), side, "sh", "-c", `[ ! -e "$1.good" ] || mv "$1.good" "$1"`, "back", program); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	t.Cleanup(back)
	t.Cleanup(func() { reconfigure(t, false) })
	configure(t, image.KnobCarrier+" = "+pool.Image("empty"), settings.KnobBindTimeout.Name+" = 8")
	reconfigure(t, true)
	fixture, err := os.ReadFile(filepath.Join("../../unpacker/testdata", "gzip.squashfs"))
	if err != nil {
		t.Fatal(err)
	}
	s := job("out=ran exit=3", "universe = container\ncontainer_image = hangs.sif")
	s.Files = append(s.Files, harness.File{Name: "hangs.sif", Content: fixture})
	hung := submit(t, s)[0]
	if _, err := hung.WaitEvent(soon(t, patience), harness.EventEvicted, 1); err != nil {
		// Other ways back to the queue have other events.
		if _, err := hung.WaitEvent(soon(t, patience), harness.EventShadowException, 1); err != nil {
			t.Fatal(err)
		}
	}
	out, err := pool.EP(t.Context(), side, "sh", "-c", `grep -l -a '8639[9]' /proc/[0-9]*/cmdline 2>/dev/null || true`)
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("processes of the conversion are left: %v\n%s", err, out)
	}
	events, err := hung.Events()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e harness.Event) bool {
		return strings.Contains(e.Text(), "was not copied into the container within 8s")
	}) {
		t.Errorf("nothing says that the conversion hung\n%s", harness.Headlines(events))
	}
	back()
	mustExit(t, hung, 3)
}
