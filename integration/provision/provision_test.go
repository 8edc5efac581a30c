//go:build pool

package provision

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/classads"
	"podstarter/integration/harness"
	"podstarter/provisioner/template"
)

// patience is how long everything in a test may take together: much longer than it does.
const patience = 10 * time.Minute

// What every test uses; set once, before the first.
var (
	pool  *harness.Pool
	probe harness.File
)

func TestMain(m *testing.M) {
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func prepare(ctx context.Context) error {
	var err error
	if pool, err = harness.Open(ctx); err != nil {
		return err
	}
	if err := Check(pool); err != nil {
		return err
	}
	if err := Clean(ctx, pool); err != nil {
		return err
	}
	probe, err = pool.Probe(ctx)
	return err
}

// soon is a context for all that a test does.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// limits of the provisioner in these tests.
const (
	mostPods    = 5
	mostPending = 3
)

const config = `interval: 10s
limits: {pods: 5, coming: 3}
policy: {settle: 1m}
`

// With nothing else to bound them.
const unlimited = `interval: 10s
policy: {settle: 1m}
`

// handful is the most pods of an image that is not there in the time of the test.
const handful = 4

// shapes are three sizes. The containers of these pods use little of them.
const shapes = `shapes:
- {name: small, cpus: 1, memory: 160Mi, disk: 64Mi}
- {name: wide, cpus: 2, memory: 160Mi, disk: 64Mi}
- {name: deep, cpus: 1, memory: 384Mi, disk: 64Mi}
`

// start applies a site, and removes it when the test ends.
func start(ctx context.Context, t *testing.T, config string, templates ...Template) *Site {
	t.Helper()
	s := &Site{Pool: pool, Mark: fmt.Sprintf("%s-%d", t.Name(), os.Getpid()), Config: config, Templates: templates}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if t.Failed() {
			s.describe(ctx, t)
		}
		if err := s.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := s.Apply(ctx, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return s
}

// describe logs what is known of the provisioner and of its pods.
func (s *Site) describe(ctx context.Context, t *testing.T) {
	for _, argv := range [][]string{
		{"get", "pods,jobs", "-o", "wide"}, {"logs", "deployment/provisioner", "--tail=40"}, {"get", "events", "--sort-by=.lastTimestamp"},
	} {
		out, err := s.kubectl(ctx, argv...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	out, err := s.Ask(ctx, "-dry-run")
	t.Logf("-dry-run: %v\n%s", err, out)
}

// submit submits jobs of a site, and removes those that are left when the test ends.
func submit(ctx context.Context, t *testing.T, s *Site, name, commands, queue string, count int) []harness.Job {
	t.Helper()
	sub := harness.Submission{
		Name: "provision-" + name, Side: harness.Ours, Files: []harness.File{probe}, Requirements: s.Requirements(), Count: count, Queue: queue,
		Commands: "universe = docker\nexecutable = " + harness.ProbeName + "\narguments = \"cat=/image-name\"\nshould_transfer_files = YES\n" +
			"output = out.$(ProcId)\nerror = err.$(ProcId)\nrequest_cpus = 1\nrequest_memory = 64\nrequest_disk = 16M\n" + s.Commands() + commands,
	}
	jobs, err := pool.Submit(ctx, sub)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeJobs(jobs) })
	return jobs
}

func removeJobs(jobs []harness.Job) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = pool.AP(ctx, "condor_rm", strconv.Itoa(jobs[0].Cluster)) // an error if none is left
}

// imageNames are those of the images that jobs ask for, in turn.
var imageNames = []string{"busybox", "debian"}

// inTurn is a queue statement for so many jobs, in the images in turn.
func inTurn(count int) string {
	var queue strings.Builder
	for i := range count {
		fmt.Fprintln(&queue, pool.Image(imageNames[i%len(imageNames)]))
	}
	return "queue docker_image from (\n" + queue.String() + ")"
}

// TestJobsGetPods: there is no pilot. Thirty jobs of three sizes and two images come, and pods for them; each job runs once, in its image. The
// limits are kept, although the provisioner is killed once and starts anew. The pods end by themselves, and after the last job no other
// pod is made.
func TestJobsGetPods(t *testing.T) {
	ctx := soon(t)
	s := start(ctx, t, config, Template{Name: "glidein", Text: shapes})
	// A pool may let everybody read, as this one does. Here the token has to do.
	if out, err := s.kubectl(ctx, "exec", "deployment/provisioner", "--", "env", "_CONDOR_SEC_CLIENT_AUTHENTICATION=REQUIRED", "condor_ping", "-type", "COLLECTOR", "READ"); err != nil || !strings.Contains(out, "IDTOKENS") || !strings.Contains(out, "provisioner@pool.invalid") {
		t.Errorf("the provisioner is not known to the collector by its token: %v\n%s", err, out)
	}
	diary, err := Follow(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const each = 10
	jobs := slices.Concat(
		submit(ctx, t, s, "small", "", inTurn(each), each),
		submit(ctx, t, s, "wide", "request_cpus = 2\n", inTurn(each), each),
		submit(ctx, t, s, "deep", "request_memory = 256\n", inTurn(each), each),
	)
	likeTheTemplates(ctx, t, s, s.Templates[0])
	if _, err := s.kubectl(ctx, "delete", "pod", "--selector=app.kubernetes.io/component=provisioner", "--grace-period=1"); err != nil {
		t.Fatal(err)
	}
	for i, job := range jobs {
		ending, err := job.WaitEnding(ctx)
		if err != nil {
			t.Fatal(err)
		}
		events, err := job.Events()
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		for _, e := range events {
			if e.Number == harness.EventExecute {
				runs++
			}
		}
		out, err := job.Output("out." + strconv.Itoa(job.Proc))
		if want := imageNames[i%each%len(imageNames)]; ending.String() != "exit code 0" || runs != 1 || err != nil || strings.TrimSpace(out) != want {
			t.Errorf("job %s: %s, %d runs, image %q, want %s: %v; %s", job.ID(), ending, runs, out, want, err, harness.Headlines(events))
		}
	}
	last := time.Now()
	t.Logf("all jobs have ended after %v", last.Sub(began).Round(time.Second))

	// The pods go.
	err = diary.Wait(ctx, "the end of all pods", func(all []Job) bool {
		return !slices.ContainsFunc(all, func(j Job) bool { return !j.Gone })
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("all pods are gone after %v", time.Since(began).Round(time.Second))
	quiet(ctx, t, s, 2)
	all := diary.Jobs()
	shapesMade, phases := map[string]int{}, map[string]int{}
	for _, j := range all {
		shapesMade[j.Shape]++
		phases[fmt.Sprint(j.Phases)]++
		if j.Failed || j.Ended.IsZero() {
			t.Errorf("a pod came to no good end: %+v", j)
		}
		if j.Made.After(last) {
			t.Errorf("%s was made after the last job had ended", j.Name)
		}
	}
	t.Logf("%d pods: %v, which went through the phases %v", len(all), shapesMade, phases)
	if len(all) > len(jobs) || shapesMade["wide"] == 0 || shapesMade["deep"] == 0 {
		t.Errorf("for %d jobs of three sizes these pods were made: %v", len(jobs), shapesMade)
	}
	if most, pending := diary.Most(); most > mostPods || pending > mostPending {
		t.Errorf("there were up to %d pods, %d of which had not begun; the limits are %d and %d", most, pending, mostPods, mostPending)
	}
}

// likeTheTemplates compares the first slot that comes with what the provisioner expects of such pods: it makes none for a job that
// its own idea of a slot does not match, and too many if a slot seems smaller than it was to be.
func likeTheTemplates(ctx context.Context, t *testing.T, s *Site, of Template) {
	t.Helper()
	var text string
	err := harness.Poll(ctx, "a slot", func() (bool, error) {
		var err error
		text, err = pool.AP(ctx, "condor_status", "-long", "-limit", "1", "-constraint", Attribute+" =?= "+strconv.Quote(s.Mark)+" && SlotType != \"Dynamic\"")
		return strings.TrimSpace(text) != "", err
	})
	if err != nil {
		t.Fatal(err)
	}
	real, err := classads.ParseOld(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"a.template.yaml": of.text(s.Mark), of.Name + ".yaml": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	templates, err := template.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	template.Contain(templates)
	// What jobs have left of it is less.
	size := func(ad *classads.Ad) string {
		return fmt.Sprint(ad.IntOr("TotalSlotCpus", 0), ad.IntOr("TotalSlotMemory", 0), ad.IntOr("TotalSlotDisk", 0), ad.IntOr("TotalSlotGPUs", 0), ad.IntOr("TotalSlotPayloads", 0))
	}
	var sizes []string
	for _, shape := range templates[0].Shapes {
		sizes = append(sizes, size(templates[0].Slot(shape, nil)))
	}
	if !slices.Contains(sizes, size(real)) {
		t.Errorf("a slot has Cpus, Memory, Disk, GPUs and Payloads %s, and the templates have %q", size(real), sizes)
	}
	expected := templates[0].Slot(templates[0].Shapes[0], nil)
	for name, value := range real.All() {
		// The node's disk, and an ad of the startd that is not about jobs.
		if !strings.HasPrefix(name, "Has") || value.String() == "false" || name == "HasRotationalScratch" || name == "HasStartDaemonAd" || name == "HasFileTransferPluginMethods" {
			continue
		}
		if e, ok := expected.Lookup(name); !ok || e.String() != value.String() {
			t.Errorf("slots have %s = %s, which the provisioner does not expect", name, value)
		}
	}
}

// quiet waits for so many more rounds, in which nothing is there, wanted or made.
func quiet(ctx context.Context, t *testing.T, s *Site, n int) {
	t.Helper()
	before, err := s.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	after := rounds(ctx, t, s, n)
	if after.Made != before.Made || after.Idle+after.Pending+after.Running > 0 {
		t.Errorf("after all the provisioner goes from %+v to %+v", before, after)
	}
}

// rounds waits for so many more rounds.
func rounds(ctx context.Context, t *testing.T, s *Site, n int) State {
	t.Helper()
	before, err := s.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.WaitState(ctx, fmt.Sprintf("%d rounds", n), func(is State) bool { return is.Rounds >= before.Rounds+n })
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// why is what the provisioner says of the first job of a cluster.
func why(ctx context.Context, t *testing.T, s *Site, cluster int) string {
	t.Helper()
	text, err := s.Ask(ctx, "-explain", fmt.Sprintf("%d.0", cluster))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPodsThatAreOfNoUse: jobs that match no template get no pod, and -explain says why. A template whose image is not there costs a handful
// of pods, which go when the jobs do.
func TestPodsThatAreOfNoUse(t *testing.T) {
	ctx := soon(t)
	nowhere := strings.Replace(pool.Image("pilot"), "pilot", "no-such-pilot", 1)
	s := start(ctx, t, unlimited, Template{Name: "broken", Text: shapes, Pilot: nowhere})
	diary, err := Follow(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	image := "docker_image = $(IMAGE_busybox)\n"
	unmatched := map[string]int{ // by what of their Requirements does not hold
		"RequestCpus": submit(ctx, t, s, "huge", image+"request_cpus = 64\n", "", 3)[0].Cluster,
		"RequestGPUs": submit(ctx, t, s, "gpu", image+"request_gpus = 1\n", "", 3)[0].Cluster,
	}
	if _, err := s.WaitState(ctx, "a round with the jobs", func(is State) bool { return is.Idle >= 6 && is.Waiting == is.Idle }); err != nil {
		t.Fatal(err)
	}
	if all := diary.Jobs(); len(all) > 0 {
		t.Errorf("for jobs that match nothing these are made: %+v", all)
	}
	for name, cluster := range unmatched {
		text := why(ctx, t, s, cluster)
		for _, want := range []string{fmt.Sprintf("The job %d.0 of the schedd", cluster), "broken/wide does not match.", name, "3 get nothing: no template has slots that match"} {
			if !strings.Contains(text, want) {
				t.Errorf("of a job whose %s is too large -explain says, without %q:\n%s", name, want, text)
			}
		}
	}

	jobs := submit(ctx, t, s, "broken", image, "", 20)
	err = diary.Wait(ctx, "a pod", func(all []Job) bool { return len(all) > 0 })
	if err != nil {
		t.Fatal(err)
	}
	// Six rounds more, the first of which after the kubelet has failed to pull.
	err = harness.Poll(ctx, "a pod whose image cannot be pulled", func() (bool, error) {
		out, err := s.kubectl(ctx, "get", "pods", "--selector="+made, "-o", "jsonpath={.items[*].status.initContainerStatuses[*].state.waiting.reason}")
		return strings.Contains(out, "ImagePull"), err
	})
	if err != nil {
		t.Fatal(err)
	}
	rounds(ctx, t, s, 6)
	all := diary.Jobs()
	t.Logf("%d pods are made of an image that does not exist", len(all))
	if len(all) > handful {
		t.Errorf("of an image that does not exist %d pods are made: %+v", len(all), all)
	}
	if text := why(ctx, t, s, jobs[0].Cluster); !strings.Contains(text, "ImageFailed") {
		t.Errorf("-explain does not say that the image cannot be pulled:\n%s", text)
	}
	removeJobs(jobs)
	err = diary.Wait(ctx, "the pods to be withdrawn", func(all []Job) bool { return !slices.ContainsFunc(all, Job.There) })
	if err != nil {
		t.Fatal(err)
	}
}
