//go:build pool

package e2e

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/image"
	"podstarter/integration/harness"
	"podstarter/unpacker/squashfs/squashfstest"
)

// TestHostileImageFiles: what an image that is a file can try with names, links, modes and devices. An image that no program makes is
// refused. Any other one runs: what the pod has mounted stays as it is, nobody gains rights, and nothing reaches a volume of the pilot.
func TestHostileImageFiles(t *testing.T) {
	oursOnly(t)
	if pool.Mode == harness.Rootless {
		t.Skip("a pilot without root cannot write an image's files")
	}
	t.Cleanup(func() { reconfigure(t, false) })
	configure(t, image.KnobCarrier+" = "+pool.Image("empty"), image.KnobPaths+" = "+imagePlace)
	reconfigure(t, true)

	empty := squashfstest.File(2, 0, squashfstest.None, 0, 0)
	with := func(list []byte, inode []byte) []byte {
		return squashfstest.Image{Inodes: slices.Concat(squashfstest.Dir(1, 0, len(list)), inode), Listings: list, Count: 2}.Bytes()
	}
	jobs := map[string]harness.Job{}
	for name, content := range map[string][]byte{
		"a name that leads up":             with(squashfstest.Listing(squashfstest.Entry(32, "..")), empty),
		"a name with a slash":              with(squashfstest.Listing(squashfstest.Entry(32, "../../etc/x")), empty),
		"a directory in itself":            with(squashfstest.Listing(squashfstest.Entry(0, "a")), empty),
		"an inode outside":                 with(squashfstest.Listing(squashfstest.Entry(8000, "a")), empty),
		"a directory under two names":      with(squashfstest.Listing(squashfstest.Entry(32, "a"), squashfstest.Entry(32, "b")), squashfstest.Dir(2, 0, 0)),
		"a file of many blocks and no end": with(squashfstest.Listing(squashfstest.Entry(32, "a")), squashfstest.File(2, 0, squashfstest.None, 0, 1<<30, 0)),
	} {
		s := job("exit=3", "universe = container\ncontainer_image = hostile.sif")
		s.Name = "hostile-" + strings.ReplaceAll(name, " ", "-")
		s.Files = append(s.Files, harness.File{Name: "hostile.sif", Content: content})
		jobs[name] = submit(t, s)[0]
	}
	// The memory of the node, as major and minor number 1.
	device := slices.Concat(squashfstest.InodeHead(5, 2), squashfstest.Words(uint32(1), uint32(1<<8|1)))
	s := job("peek=/device facts", "universe = container\ncontainer_image = device.sif")
	s.Files = append(s.Files, harness.File{Name: "device.sif", Content: with(squashfstest.Listing(squashfstest.Entry(32, "device")), device)})
	withDevice := submit(t, s)[0]

	// Directories, of which root of the pilot makes everything that they can hold. The first has a file named "evil", or with that word, wherever
	// the payload container has a mount, and at one place where it has none, so that the job's own look is seen to find it.
	mounts := payloadMounts(t)
	make := `set -e; base=$1; shift; rm -rf $base
for p in /bin/dash /bin/grep /usr/bin/stat; do
	for f in $p $(ldd $p | grep -o '/[^ ]*'); do mkdir -p $base/places$(dirname $f); cp -L $f $base/places$f; done
done
cd $base/places; for m in /free "$@"; do mkdir -p .$m; echo evil >.$m/evil; done
for m in /etc/hosts /etc/hostname /etc/resolv.conf /dev/termination-log /proc/slabinfo /proc/evil /sys/evil /dev/evil /dev/shm/evil; do
	[ ! -d .$m ] || rm -r .$m; mkdir -p .$(dirname $m); echo evil >.$m
done
cp bin/dash suid; chmod 6755 suid; mkdir open; chmod 2777 open; echo x >open/writable; chmod 666 open/writable
mkfifo pipe
cp -a $base/places $base/links; cd $base/links; rm -rf etc/passwd etc/group tmp srv var/tmp; mkdir -p var
ln -s $(condor_config_val EXECUTE)/stolen etc/passwd; ln -s $(condor_config_val POD_STARTER_CONTROL_DIR)/stolen etc/group
ln -s $(condor_config_val EXECUTE) tmp; ln -s ../../proc/self/root var/tmp; ln -s / everything`
	t.Cleanup(func() {
		if _, err := pool.EP(background(t), side, "rm", "-rf", imagePlace); err != nil {
			t.Error(err)
		}
	})
	if out, err := pool.EP(t.Context(), side, append([]string{"sh", "-c", make, "make", imagePlace}, mounts...)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// volumes are the pilot's directories to which links lead, and what was stolen into them.
	volumes := func() string {
		t.Helper()
		out, err := pool.EP(t.Context(), side, "sh", "-c", `for d in $(condor_config_val EXECUTE POD_STARTER_CONTROL_DIR); do stat -c '%n %a %u:%g' $d; find $d -name 'stolen*'; done`)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := volumes()
	look := `#!/bin/dash
while read -r _ _ _ _ place _; do
	if [ -d "$place" ]; then [ ! -e "$place/evil" ] || echo "evil in $place"; elif /bin/grep -q '^evil$' "$place" 2>/dev/null; then echo "evil is $place"; fi
done </proc/self/mountinfo
[ ! -e /free/evil ] || echo "evil in /free"
/usr/bin/stat -c '%n %a %u:%g %F' /suid /open /open/writable /pipe
for d in / /etc /open /usr /bin; do [ ! -w $d ] || echo "can write to $d"; done
while read -r name value; do case $name in Uid:|CapEff:|CapBnd:|NoNewPrivs:) echo "$name $value";; esac; done </proc/self/status
/suid -c 'read -r _ uid _ <<END
$(/bin/grep Uid: /proc/self/status)
END
echo "as $uid"' || true
exit 0
`
	for _, name := range []string{"places", "links"} {
		s := harness.Submission{
			Name: "hostile-" + name, Files: []harness.File{{Name: "look", Content: []byte(look)}},
			Commands: strings.Join([]string{
				"universe = container", "container_image = " + imagePlace + "/" + name, "transfer_container = False", "executable = look", "output = out", "error = err",
				"should_transfer_files = YES", "request_cpus = 1", "request_memory = 64", "request_disk = 16M",
			}, "\n"),
		}
		jobs[name] = submit(t, s)[0]
	}

	for name, submitted := range jobs {
		t.Run(name, func(t *testing.T) {
			if name != "places" && name != "links" {
				end := ending(t, submitted)
				if !end.Held || end.Code != holdInvalidDockerImage || end.Subcode != image.SubcodeBadFile {
					t.Errorf("%s; want held with code %d, subcode %d", end, holdInvalidDockerImage, image.SubcodeBadFile)
				}
				return
			}
			mustExit(t, submitted, 0)
			got, err := submitted.Output("out")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(seenOfHostileImage, got); diff != "" {
				said, _ := submitted.Output("err")
				t.Errorf("(-want +got):\n%s\n%s", diff, said)
			}
			if after := volumes(); after != before {
				t.Errorf("the pilot's volumes were\n%s\nand are\n%s", before, after)
			}
		})
	}
	mustExit(t, withDevice, 0)
	if seen, err := withDevice.Facts("out"); err != nil || !strings.Contains(seen.Peeks["/device"], "no such file") {
		t.Errorf("a device of the image: %v, %v", seen.Peeks, err)
	}
	mustExit(t, submit(t, jobExit(4))[0], 4)
}

// seenOfHostileImage: the only file named evil is at the place that is no mount; no bit gives rights; what the image
// lets everybody write to can be written to.
const seenOfHostileImage = `evil in /free
/suid 755 0:0 regular file
/open 777 0:0 directory
/open/writable 666 0:0 regular file
/pipe 644 0:0 fifo
can write to /open
Uid: 10001	10001	10001	10001
CapEff: 0000000000000000
CapBnd: 0000000000000000
NoNewPrivs: 1
as 10001
`

// payloadMounts are the directories that the pod mounts in a payload container.
func payloadMounts(t *testing.T) []string {
	t.Helper()
	text, err := pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod/"+side.PodName(), "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var pod map[string]any
	if err := json.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, m := range container(pod, "payload")["volumeMounts"].([]any) {
		places = append(places, path.Clean(m.(map[string]any)["mountPath"].(string)))
	}
	return places
}
