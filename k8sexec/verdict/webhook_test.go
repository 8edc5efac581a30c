package verdict

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Denials as the API server words them; the first three are of deploy/policy.
func TestAdmissionVerdicts(t *testing.T) {
	const image = "registry.example.com/user/tool:1"
	const once = "registry.example.com/user/tool:run-1@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	type want struct {
		Class   Class
		Subcode int
		Form    bool
	}
	for _, tt := range []struct {
		name, spec, message string
		code                int
		want                want
	}{
		{"our policy: image", image, `pods "p" is forbidden: ValidatingAdmissionPolicy 'podstarter-images' with binding 'podstarter-images' denied request: image ` + image + ` is not one of those that jobs may run on this cluster`,
			http.StatusForbidden, want{ToUser, SubcodePolicy, true}},
		{"our policy: image with a throw-away tag", once, `pods "p" is forbidden: ValidatingAdmissionPolicy 'podstarter-images' with binding 'podstarter-images' denied request: image ` + once + ` is not one of those that jobs may run on this cluster`,
			http.StatusForbidden, want{ToUser, SubcodePolicy, true}},
		{"our policy: pilot", image, `pods "p" is forbidden: ValidatingAdmissionPolicy 'podstarter-pilot' with binding 'podstarter-pilot' denied request: a pilot may patch its own pod alone, and this token is bound to no pod`,
			http.StatusForbidden, want{Class: ToPilot}},
		// gatekeeper-library general/allowedrepos.
		{"Gatekeeper", image, `admission webhook "validation.gatekeeper.sh" denied the request: [repos] container <payload> has an invalid image repo <` + image + `>, allowed repos are ["registry.example.org/"]`,
			http.StatusForbidden, want{ToUser, SubcodePolicy, true}},
		{"another image", image, `admission webhook "validation.gatekeeper.sh" denied the request: [repos] container <pilot> has an invalid image repo <registry.example.com/user/tool:1.2>`,
			http.StatusForbidden, want{ToElsewhere, 0, true}},
		{"something else", image, `admission webhook "quota.example.com" denied the request: too many changes`, http.StatusForbidden, want{ToElsewhere, 0, true}},
		{"no answer", image, `Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: Post "https://images.example.com/` + image + `": context deadline exceeded`,
			http.StatusInternalServerError, want{ToElsewhere, 0, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := Judge(Failure{Origin: FromAPI, Image: image, Spec: tt.spec, Code: tt.code, Reason: "Forbidden", Message: tt.message})
			if diff := cmp.Diff(tt.want, want{j.Class, j.Subcode, j.Form}); diff != "" {
				t.Errorf("judgement (-want +got):\n%s%s", diff, j.Verdict())
			}
		})
	}
}
