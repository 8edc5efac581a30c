package verdict

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"podstarter/payload"
)

// TestVerdictsOnRecordings judges what a real kubelet reported about real failures.
func TestVerdictsOnRecordings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "k8s", "failures.json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Failures []struct {
			Name, Image, Reason, Message, Blame string
			Subcode                             int
			Again                               bool
		}
	}
	if err := json.Unmarshal(data, &recorded); err != nil {
		t.Fatal(err)
	}
	if len(recorded.Failures) == 0 {
		t.Fatal("no recordings")
	}
	for _, r := range recorded.Failures {
		t.Run(r.Name, func(t *testing.T) {
			j := Judge(Failure{Origin: FromContainer, Image: r.Image, Spec: r.Image, Reason: r.Reason, Message: r.Message, Tries: 1, Since: time.Now()})
			v := j.Verdict()
			if v.Blame.String() != r.Blame || v.Subcode != r.Subcode || j.Again != r.Again {
				t.Errorf("%v/%d again %v, want %s/%d again %v: %s", v.Blame, v.Subcode, j.Again, r.Blame, r.Subcode, r.Again, v.Message)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	const image = "registry.example.com/user/tool:1"
	pull := func(message string) Failure {
		return Failure{Origin: FromContainer, Image: image, Spec: image, Reason: "ErrImagePull", Message: message, Tries: 1, Since: time.Now()}
	}
	container := func(reason, message string) Failure {
		f := pull(message)
		f.Reason = reason
		return f
	}
	ended := func(e corev1.ContainerStateTerminated) Failure {
		reason := ReasonContainerEnd
		if e.Reason == ReasonOutOfMemory {
			reason = ReasonOutOfMemory
		}
		return Failure{Origin: FromContainer, Image: image, Reason: reason, Message: e.Message, Exit: &e}
	}
	type want struct {
		class   Class
		subcode int
		again   bool
	}
	tests := []struct {
		name string
		f    Failure
		want want
	}{
		// Docker Hub, and registries that hide what exists (containerd remotes/docker).
		{"hidden repository", pull(`failed to resolve reference "` + image + `": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`),
			want{ToUser, SubcodeDenied, false}},
		{"anonymous token refused", pull(`failed to resolve reference "` + image + `": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://auth.example.com/token: 401 Unauthorized`),
			want{ToUser, SubcodeDenied, false}},
		{"token server down", pull(`failed to resolve reference "` + image + `": failed to authorize: failed to fetch oauth token: unexpected status from POST request to https://auth.example.com/token: 503 Service Unavailable`),
			want{ToElsewhere, 0, true}},
		{"Docker Hub limit", pull(`failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/user/tool/manifests/1: 429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit.`),
			want{ToElsewhere, 0, false}},
		{"kubelet's own limit", pull("pull QPS exceeded"), want{ToElsewhere, 0, true}},
		{"CRI-O: unknown tag", pull(`initializing source docker://` + image + `: reading manifest 1 in registry.example.com/user/tool: manifest unknown`),
			want{ToUser, SubcodeNotFound, false}},
		{"CRI-O: denied", pull(`initializing source docker://` + image + `: reading manifest 1 in registry.example.com/user/tool: unauthorized: access to the requested resource is not authorized`),
			want{ToUser, SubcodeDenied, false}},
		{"CRI-O: architecture", pull(`choosing image instance: no image found in image index for architecture "amd64", variant "", OS "linux"`),
			want{ToUser, SubcodePlatform, false}},
		{"the registry has it for others", Failure{Origin: FromRegistry, Image: image, Reason: ReasonPlatform, Message: "it has none for linux/amd64"}, want{ToUser, SubcodePlatform, false}},
		{"CRI-O: policy", pull(`Source image rejected: A signature was required, but no signature exists`), want{ToUser, SubcodeSignature, false}},
		{"signature", container("SignatureValidationFailed", "image pull failed for x because the signature validation failed"), want{ToUser, SubcodeSignature, false}},
		{"registry unavailable", container("RegistryUnavailable", "image pull failed for x because the registry is unavailable"), want{ToElsewhere, 0, true}},
		{"bad gateway", pull(`unexpected status from HEAD request to https://registry.example.com/v2/user/tool/manifests/1: 502 Bad Gateway`), want{ToElsewhere, 0, true}},
		{"resolver", pull(`dial tcp: lookup registry.example.com on 10.0.0.10:53: server misbehaving`), want{ToElsewhere, 0, true}},
		{"resolver timeout", pull(`dial tcp: lookup registry.example.com: i/o timeout`), want{ToElsewhere, 0, true}},
		{"unknown authority", pull(`tls: failed to verify certificate: x509: certificate signed by unknown authority`), want{ToElsewhere, 0, false}},
		{"TLS handshake timeout", pull(`net/http: TLS handshake timeout`), want{ToElsewhere, 0, true}},
		{"connection broken", pull(`failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example.com/blob": read tcp 10.1.2.3:4->192.0.2.7:443: read: connection reset by peer`), want{ToElsewhere, 0, true}},
		{"no progress", pull(`failed to pull and unpack image "` + image + `": context canceled`), want{ToElsewhere, 0, true}},
		{"disk full in pull", pull(`failed to extract layer sha256:0: write /var/lib/containerd/tmp: no space left on device: unknown`), want{ToPilot, 0, false}},
		{"disk full in create", container("CreateContainerError", "mkdir /var/lib/containerd/x: no space left on device"), want{ToPilot, 0, false}},
		{"nobody knows", pull("something went wrong"), want{ToElsewhere, 0, true}},
		{"never pull", container("ErrImageNeverPull", `Container image "x" is not present with pull policy of Never`), want{ToPilot, 0, false}},
		{"invalid name", container("InvalidImageName", "couldn't parse image name"), want{ToUser, SubcodeInvalidReference, false}},
		{"secret missing", container("CreateContainerConfigError", `secret "x" not found`), want{ToElsewhere, 0, true}},
		{"exec format", container("RunContainerError", `exec /proc/slabinfo: exec format error`), want{ToPilot, 0, false}},
		{"/proc is a link", container("RunContainerError", `error mounting "proc" to rootfs at "/proc": filesystem "proc" must be mounted on ordinary directory`),
			want{ToUser, SubcodeBadImage, false}},
		{"a link leads a volume to /proc", container("RunContainerError", `error mounting "/x/execute" to rootfs at "/var/lib/condor/execute": "/x/rootfs/proc" cannot be mounted because it is not of type proc`),
			want{ToUser, SubcodeBadImage, false}},
		{"the wrapper's file is missing", container("RunContainerError", `error mounting "/x/podstarter-bin/payload/2" to rootfs at "/proc/slabinfo": mount /x:/proc/slabinfo (via /proc/self/fd/6), flags: 0x5000: not a directory`),
			want{ToPilot, 0, false}},
		{"out of memory", ended(corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}), want{ToUser, SubcodeOutOfMemory, false}},
		{"killed", ended(corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137}), want{ToElsewhere, 0, false}},
		{"API: container is not there", Failure{Origin: FromAPI, Code: http.StatusUnprocessableEntity, Message: "spec.containers: Forbidden: pod updates may not add or remove containers"},
			want{ToPilot, 0, false}},
		{"API: something else", Failure{Origin: FromAPI, Code: http.StatusUnprocessableEntity, Message: "no"}, want{ToPilot, 0, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := Judge(tt.f)
			got := want{j.Class, j.Subcode, j.Again}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("judgement (-want +got):\n%s%s", diff, j.Verdict())
			}
			if v := j.Verdict(); !strings.Contains(v.Message, strings.TrimSpace(tt.f.Message)) {
				t.Errorf("the words are lost: %s", v.Message)
			}
		})
	}
}

// The user chooses the image's name, and it must not choose the verdict.
func TestNameOfImageDoesNotMatter(t *testing.T) {
	const words = `failed to pull and unpack image "%s": failed to resolve reference "%s": failed to do request: Head "https://%s": connection refused`
	for _, image := range []string{
		"registry.example.com/denied/unauthorized:1",
		"registry.example.com/x509/no-match:toomanyrequests",
		"registry.example.com/tls/tool:x509",
		"registry.example.com/eof/certificate:denied",
	} {
		repository, tag, _ := strings.Cut(image, ":")
		_, path, _ := strings.Cut(repository, "/")
		message := strings.NewReplacer(`https://%s`, "https://registry.example.com/v2/"+path+"/manifests/"+tag, "%s", image).Replace(words)
		j := Judge(Failure{Origin: FromContainer, Image: image, Spec: image, Reason: "ErrImagePull", Message: message})
		if j.Class != ToElsewhere || !j.Again {
			t.Errorf("%s: class %v: %s", image, j.Class, j.Verdict())
		}
	}
}

func TestVerdictIsBounded(t *testing.T) {
	page := "<html>\n" + strings.Repeat("é\r\n", 100000)
	v := Judge(Failure{Origin: FromContainer, Reason: "ErrImagePull", Message: page}).Verdict()
	if len(v.Message) > 2*maxWords || !utf8.ValidString(v.Message) || strings.ContainsAny(v.Message, "\r\n") {
		t.Errorf("message of %d bytes: %.100q", len(v.Message), v.Message)
	}
}

func TestIsFinal(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name string
		j    Judgement
		want bool
	}{
		{"not mendable", Judgement{}, true},
		{"first try", Judgement{Again: true, Failure: Failure{Tries: 1, Since: now}}, false},
		{"enough tries", Judgement{Again: true, Failure: Failure{Tries: MaxTries, Since: now}}, true},
		{"enough time", Judgement{Again: true, Failure: Failure{Tries: 1, Since: now.Add(-maxPatience)}}, true},
	}
	for _, tt := range tests {
		if got := tt.j.IsFinal(now); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("ErrImagePull", `failed to resolve reference "a": not found`, "a", 0, 1)
	f.Add("RunContainerError", `exec: "x": stat x: no such file or directory`, "registry.example.com:5000/a@sha256:0", 403, 3)
	f.Fuzz(func(t *testing.T, reason, message, image string, code, from int) {
		j := Judge(Failure{Origin: Origin(from), Reason: reason, Message: message, Image: image, Spec: image, Code: code})
		v := j.Verdict()
		if v.Message == "" || strings.ContainsAny(v.Message, "\n\r") && !strings.ContainsAny(image, "\n\r") {
			t.Errorf("message %q", v.Message)
		}
		if (v.Blame == payload.User) != (j.Class == ToUser) || v.Blame == payload.User && v.Subcode == 0 {
			t.Errorf("blame %v/%d", v.Blame, v.Subcode)
		}
	})
}

// TestNoJobAfterThePodsEnd: a pod that comes to its end takes no more jobs.
func TestNoJobAfterThePodsEnd(t *testing.T) {
	for _, reason := range []string{ReasonPodDeleted, ReasonPodReplaced, ReasonPodEnded, "Evicted", "DeadlineExceeded", "NodeShutdown"} {
		if v := Judge(Failure{Origin: FromPod, Reason: reason}).Verdict(); v.Blame != payload.Pilot {
			t.Errorf("%s: blame %v", reason, v.Blame)
		}
	}
}
