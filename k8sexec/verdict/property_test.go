package verdict

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"podstarter/payload"
)

// TestEveryFailureIsBlamed: whatever is known about a failure, the verdict blames
// somebody and has a message, and blames a user only with a subcode. It can never be
// taken for success.
func TestEveryFailureIsBlamed(t *testing.T) {
	const rounds = 20000
	words := []string{
		"", "not found", ": not found", "401 Unauthorized", "429 Too Many Requests", "503 Service Unavailable", "x509: unknown", "connection refused",
		"no space left on device", "exec: no such file or directory", "admission webhook denied", "completed successfully", "exit code 0", "Completed", "\x00\xff", "OOMKilled",
	}
	reasons := []string{
		"", ReasonErrPull, ReasonPullBackOff, ReasonInvalidName, ReasonCrashLoop, ReasonUnreachable, ReasonNoContainer, ReasonPodReplaced, ReasonPodEnded,
		ReasonPodDeleted, ReasonTimeout, ReasonSilent, ReasonUnusable, ReasonContainerEnd, ReasonOutOfMemory, ReasonPrivateDir, ReasonNoneFree, ReasonPlatform,
		"Completed", "Error", "Evicted", "DeadlineExceeded", "Succeeded", "RunContainerError", "Forbidden",
	}
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for range rounds {
		f := Failure{
			Origin: Origin(r.IntN(9)), Reason: pick(reasons), Message: pick(words) + pick(words), Image: pick([]string{"", "a", "registry.example.com/a:1", "A:::"}),
			Code: r.IntN(600), Tries: r.IntN(5),
		}
		f.Spec = f.Image
		if r.IntN(2) == 0 {
			f.Exit = &corev1.ContainerStateTerminated{ExitCode: int32(r.IntN(3)), Reason: pick(reasons)}
		}
		v := Judge(f).Verdict()
		if v.Blame != payload.User && v.Blame != payload.Site && v.Blame != payload.Pilot || v.Message == "" || (v.Blame == payload.User) != (v.Subcode != 0) {
			t.Fatalf("%+v is judged %v/%d %q", f, v.Blame, v.Subcode, v.Message)
		}
	}
}

// A container that ended by itself with 0, which the wrapper never does, is as lost
// as any other.
func TestExitOfTheContainerIsNotTheJobs(t *testing.T) {
	for _, reason := range []string{"Completed", "Error", ""} {
		v := Judge(Failure{Origin: FromContainer, Reason: ReasonContainerEnd, Exit: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: reason}}).Verdict()
		if v.Blame != payload.Site {
			t.Errorf("%q: %v", reason, v)
		}
	}
}
