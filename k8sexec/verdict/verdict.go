package verdict

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// Class says who has to act, in more detail than payload.Blame.
type Class int

const (
	ToUser      Class = iota // the user has to change something: hold
	ToElsewhere              // this may work in another pod or later: requeue
	ToPilot                  // nothing will run in this pod until an admin acts: requeue
)

// Judgement is a rule's opinion of a failure.
type Judgement struct {
	Class Class
	// Subcode lets programs distinguish user failures; see the Subcode constants.
	Subcode int
	// Says is a sentence or two: what happened, in the reader's words, and what to do.
	// The message of kubelet, runtime or registry follows it.
	Says string
	// Again says that the kubelet's own next attempts may well succeed.
	Again bool
	// Form says that the way the image was written may be the cause: a tag beside
	// a digest is not understood everywhere.
	Form bool
	// Digest says that the digest may be the cause: registries drop old images when
	// their tag moves on.
	Digest bool
	// Suspect says that the image can cause this as well as a broken pod can; see
	// package k8sexec.
	Suspect bool
	// Cleared is the class once it is known that the pod is not to blame.
	Cleared Class
	// OfImage and OfPod replace Says once it is known which of the two is to blame.
	OfImage, OfPod string

	Failure Failure
}

// Subcodes of verdicts that blame the user; stable, for programs that act on
// holds.
const (
	SubcodeInvalidReference = 1
	SubcodeNotFound         = 2
	SubcodeDenied           = 3
	SubcodePlatform         = 4
	SubcodeSignature        = 5
	SubcodeBadImage         = 6
	SubcodeOutOfMemory      = 7
	SubcodePolicy           = 8
)

// rule recognises one kind of failure.
type rule func(Failure) (Judgement, bool)

// suspicion makes a suspect's judgement, with the text for each outcome.
func suspicion(class Class, ofImage, ofPod string) Judgement {
	j := Judgement{Class: class, Suspect: true, OfImage: ofImage, OfPod: ofPod, Says: ofPod}
	if class == ToUser {
		j.Subcode, j.Says = SubcodeBadImage, ofImage
	}
	return j
}

// rules are asked in this order. Those that recognise a failure by who reported it come
// first; of those that read messages the more specific come first, since messages quote
// one another: "failed to authorize: ... 503 Service Unavailable" is about a registry
// that is down and not about permissions, "failed to extract layer: ... unexpected EOF"
// about the image and not about the network.
var rules = [...]rule{
	rulePilotFiles,
	ruleNoneFree,
	ruleStillAlive,
	ruleNotResized,
	ruleInvalidReference,
	ruleWebhook,
	ruleForbidden,
	ruleNoSuchPod,
	ruleUnreachableAPI,
	ruleRefusedPatch,
	ruleTimeout,
	ruleBusy,
	ruleSilentWrapper,
	ruleOutOfMemory,
	ruleEvicted,
	ruleOvertaken,
	rulePodEnds,
	ruleContainerEnded,
	ruleCrashLoop,
	ruleNeverPull,
	ruleWrapperMissing,
	ruleMountPoint,
	ruleDiskFull,
	ruleRuntime,
	ruleBadImage,
	ruleRateLimit,
	ruleRegistryDown,
	ruleTLS,
	ruleDNS,
	ruleNetwork,
	ruleSignature,
	rulePlatform,
	ruleDenied,
	ruleNotFound,
	rulePullStalled,
	ruleUnknown,
}

// Judge asks the rules. The last one recognises everything.
func Judge(f Failure) Judgement {
	f.text = f.words()
	for _, r := range rules {
		if j, ok := r(f); ok {
			j.Failure = f
			return j
		}
	}
	return Judgement{Class: ToElsewhere, Says: "The payload container could not be prepared.", Failure: f}
}

// Bounds on waiting for the kubelet's own further attempts to pull. It makes them 10,
// 20, 40 s ... apart, and reports each some seconds later: three attempts survive an
// outage of half a minute, and attempts that each run into a timeout do not hold the
// job up forever.
const (
	MaxTries    = 3
	maxPatience = 40 * time.Second
)

// IsFinal says that the binding should not wait for the kubelet's further attempts.
func (j Judgement) IsFinal(now time.Time) bool {
	return !j.Again || j.Failure.Tries >= MaxTries || now.Sub(j.Failure.Since) >= maxPatience
}

// Verdict turns the judgement into a *payload.Verdict. Its message quotes the cause, so
// the cause is not attached once more.
func (j Judgement) Verdict() *payload.Verdict {
	v := &payload.Verdict{Blame: payload.Site, Reason: j.Failure.Reason, Message: j.message(), MemoryLimit: j.Failure.MemoryLimit}
	switch j.Class {
	case ToUser:
		v.Blame, v.Subcode = payload.User, j.Subcode
	case ToPilot:
		v.Blame = payload.Pilot
	}
	return v
}

// maxWords bounds what is quoted: an HTML page that a proxy sent instead of a
// manifest does not belong in a job's hold reason in full.
const maxWords = 1000

// message is one line: our sentence, and the quoted message of who reported the
// failure.
func (j Judgement) message() string {
	words := j.Failure.Message
	if words == "" && j.Failure.Err != nil {
		words = j.Failure.Err.Error()
	}
	words = strings.Join(strings.Fields(words), " ")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	if words == "" {
		return j.Says
	}
	return fmt.Sprintf("%s (%s)", j.Says, words)
}

// IsPull says whether the failure was to get the image onto the node, and not to run it.
func (f Failure) IsPull() bool { return f.inPull() || f.Reason == reasonNeverPull }

// inPull says whether the failure was to get the image, and not to run it: only the
// former can be about the image's name.
func (f Failure) inPull() bool {
	switch f.Reason {
	case ReasonErrPull, ReasonPullBackOff, ReasonInvalidName, "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		return f.Origin == FromContainer
	}
	return false
}

// words is the message in lower case without the image's name: the user chooses that,
// and it must not decide who is to blame.
func (f Failure) words() string {
	text := f.Message
	for _, written := range []string{f.Spec, f.Image} {
		img, err := imageref.Parse(written)
		if err != nil {
			continue
		}
		_, path, _ := strings.Cut(img.Repository, "/")
		text = strings.NewReplacer(img.String(), "", img.Repository, "", "/"+path+"/", "/").Replace(text)
		if img.Tag != "" { // left over from URLs such as .../manifests/TAG
			text = regexp.MustCompile(`[:/]`+regexp.QuoteMeta(img.Tag)+`\b`).ReplaceAllString(text, "")
		}
	}
	return strings.ToLower(text)
}

// says reports whether the message has one of the phrases, given in lower case.
func (f Failure) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(f.text, p) {
			return true
		}
	}
	return false
}

// OnPod is the judgement when no other job would succeed here either.
func (j Judgement) OnPod(why string) Judgement {
	j.Class, j.Subcode, j.Says = ToPilot, 0, j.OfPod+" "+why
	return j
}
