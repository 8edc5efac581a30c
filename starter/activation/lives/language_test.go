package lives_test

import "testing"

// TestLanguage: what the site adds to the ClassAd language counts in attributes of a job and of its slot.
func TestLanguage(t *testing.T) {
	knobs := func(more map[string]string) map[string]string {
		all := map[string]string{"STARTER_CLASSAD_USER_MAP_NAMES": "m", "CLASSAD_USER_MAPDATA_m": "* alice first,second"}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	run(t, []life{
		{
			name: "a map", job: "Arguments = userMap(\"m\", \"alice\")\n", script: `echo "$1"`, knobs: knobs(nil),
			want: want{last: "job_exit 0 100", output: output("first,second\n")},
		},
		{
			name: "a map that the site does not have", job: "Arguments = userMap(\"other\", \"alice\", \"a\", \"none\")\n", script: `echo "$1"`, knobs: knobs(nil),
			want: want{last: "job_exit 0 100", output: output("none\n")},
		},
		{
			name: "leniently", job: "Arguments = string(CurrentTime > 0)\n", script: `echo "$1"`,
			want: want{last: "job_exit 0 100", output: output("true\n")},
		},
		{
			name: "strictly", job: "Arguments = string(CurrentTime > 0)\n", script: `echo "$1"`, knobs: knobs(map[string]string{"STRICT_CLASSAD_EVALUATION": "true"}),
			want: want{last: "job_exit 0 100", output: output("\n")},
		},
	})
}
