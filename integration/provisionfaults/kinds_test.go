//go:build pool

package provisionfaults

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestKindsOfJobs: pods for what a real schedd has in its queue, and the words of -explain for it.
func TestKindsOfJobs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commands string
		slot     []string
		// pods are made, and words are said of the group's first job.
		pods  int
		words []string
	}{
		"plain":        {commands: "queue 2", pods: 2, words: []string{"plain/one matches", "2 get room of a pod that is made now"}},
		"held":         {commands: "hold = True\nqueue 2", words: []string{"it is held"}},
		"materialized": {commands: "max_idle = 2\nqueue 10", pods: 2, words: []string{"2 idle jobs"}},
		"usage": {
			commands: "request_memory = ifThenElse(MemoryUsage isnt undefined, MemoryUsage * 2, 100)\n+MemoryUsage = 3000\nqueue",
			words:    []string{"TARGET.Memory >= RequestMemory", "6000"},
		},
		"usage of another attribute": {
			commands: "request_memory = ifThenElse(MemoryUsage isnt undefined, MemoryUsage * 2, 100)\n+MemoryUsage = (ResidentSetSize + 1023) / 1024\n+ResidentSetSize = 512000\nqueue",
			pods:     1, words: []string{"1466 MiB memory"}, // the schedd rounds sizes of processes
		},
		"now":             {commands: "requirements = CurrentTime >= QDate\nqueue", pods: 1},
		"later":           {commands: "requirements = CurrentTime - QDate > 3600\nqueue", words: []string{"CurrentTime - QDate > 3600"}},
		"deferred":        {commands: fmt.Sprintf("deferral_time = %d\ndeferral_prep_time = 60\nqueue", time.Now().Add(5*time.Hour).Unix()), words: []string{"DeferralTime"}},
		"GPUs":            {commands: "request_gpus = 1 + 1\nqueue", words: []string{"TARGET.GPUs >= RequestGPUs"}},
		"kinds of GPUs":   {commands: "request_gpus = 1\nrequire_gpus = Capability > 8\nqueue", words: []string{"countMatches"}},
		"grid":            {commands: "universe = grid\ngrid_resource = batch slurm\nqueue", words: []string{"of the grid universe"}},
		"local":           {commands: "universe = local\nhold = True\nqueue", words: []string{"it is held"}},
		"parallel":        {commands: "universe = parallel\nmachine_count = 3\nqueue", slot: []string{`DedicatedScheduler = "DedicatedScheduler@$SCHEDD"`}, pods: 3},
		"not dedicated":   {commands: "universe = parallel\nmachine_count = 3\nqueue", words: []string{"dedicated scheduler"}},
		"of another one":  {commands: "universe = parallel\nmachine_count = 3\nqueue", slot: []string{`DedicatedScheduler = "DedicatedScheduler@other"`}, words: []string{"dedicated scheduler"}},
		"limited":         {commands: "concurrency_limits = license:2\nqueue", pods: 1},
		"group":           {commands: "accounting_group = group_physics\nqueue", pods: 1, words: []string{"group_physics." + alice}},
		"docker":          {commands: "universe = docker\ndocker_image = debian:13\nqueue", pods: 1},
		"container":       {commands: "universe = container\ncontainer_image = docker://debian:13\nqueue", pods: 1},
		"java":            {commands: "universe = java\nexecutable = a.jar\narguments = a\nqueue", words: []string{"TARGET.HasJava"}},
		"deep references": {commands: "requirements = MY.A\n+A = MY.B\n+B = MY.C > 3\n+C = 4\nqueue", pods: 1},
		"another scope":   {commands: "requirements = TARGET.Memory > MY.Least\n+Least = RequestMemory * 5\nqueue", pods: 1},
		"one CPU of many": {commands: "request_cpus = ifThenElse(TARGET.Cpus >= 4, 4, 1)\nqueue", pods: 1},
		"own START":       {commands: "+Project = \"x\"\nqueue", slot: []string{`START = TARGET.Project == "y"`}, words: []string{`TARGET.Project == "y"`}},
		"a text of lines": {commands: "requirements = MY.Text isnt undefined\n+Text = \"a\\nJobCount = 7\\n\\nb\"\nqueue", pods: 1},
		"prepared":        {commands: "leave_in_queue = True\npriority = 20\nnice_user = True\nqueue", pods: 1},
		"large disk":      {commands: "request_disk = 100G\nqueue", words: []string{"RequestDisk"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "kind-"+strings.ReplaceAll(strings.ToLower(name), " ", "-")[:min(len(name), 14)])
			for i := range c.slot {
				c.slot[i] = strings.ReplaceAll(c.slot[i], "$SCHEDD", condor.schedds[one])
			}
			s.template("plain", fmt.Sprintf(podManifest, held), "shapes:\n- {name: one, cpus: 1, memory: 2Gi, disk: 1Gi}\n- {name: four, cpus: 4, memory: 4Gi, disk: 4Gi}\n", c.slot...)
			condor.submit(t, one, alice, s.name, c.commands)
			var dry string
			s.await("pods", time.Minute, func() error {
				dry = s.dryRun()
				if n := strings.Count(dry, "make "); n > 0 != (c.pods > 0) {
					return fmt.Errorf("%s", dry)
				}
				return nil
			})
			if c.pods > 0 && !strings.Contains(dry, fmt.Sprintf("make %d of plain/", c.pods)) {
				t.Errorf("want %d pods:\n%s", c.pods, dry)
			}
			id := strings.Fields(condor.must(t, "", "", "condor_q", "-name", condor.schedds[one], "-allusers", "-constraint", fmt.Sprintf("ProvisionTest == %q", s.name), "-af:j", "ClusterId"))
			if len(id) == 0 {
				t.Fatal("there is no job")
			}
			text := s.say("-explain", id[0])
			t.Log(text)
			for _, w := range c.words {
				if !strings.Contains(text, w) {
					t.Errorf("it does not say %q", w)
				}
			}
		})
	}
}
