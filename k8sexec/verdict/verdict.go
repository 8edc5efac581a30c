package verdict

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// Class is whose turn it is, finer than payload.Blame.
type Class int

const (
	ToUser      Class = iota // the user has to change something: hold
	ToElsewhere              // this may work in another pod or later: requeue
	ToPilot                  // nothing will run in this pod until an admin acts: requeue
)

// Judgement is what a rule makes of a failure.
type Judgement struct {
	Class Class
	// Subcode tells user failures apart for programs; see the Subcode constants.
	Subcode int
	// Says is a sentence or two: what happened, in the reader's words, and what to
	// do. The words of kubelet, runtime or registry are added to it.
	Says string
	// Again says that the kubelet's own next attempts may well succeed.
	Again bool
	// Form says that the way the image was written may be the cause: a tag beside
	// a digest is not understood everywhere.
	Form bool
	// Digest says that the digest may be the cause: registries drop old images when
	// their tag moves on.
	Digest bool
	// Suspect says that the image can bring this about as well as a pod out of
	// order; see package k8sexec.
	Suspect bool
	// Cleared is the class once it is known that it was not the pod.
	Cleared Class
	// OfImage and OfPod are what a suspect's says becomes when it is known which
	// of the two it was.
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

// suspicion is a judgement of a class, with the words for each outcome.
func suspicion(class Class, ofImage, ofPod string) Judgement {
	j := Judgement{Class: class, Suspect: true, OfImage: ofImage, OfPod: ofPod, Says: ofPod}
	if class == ToUser {
		j.Subcode, j.Says = SubcodeBadImage, ofImage
	}
	return j
}

// rules in the order in which they are asked. Those that recognise a failure by
// who reported it come first; among those that read messages the more special
// come first, since messages quote one another: "failed to authorize: ... 503
// Service Unavailable" is about a registry that is down and not about
// permissions, "failed to extract layer: ... unexpected EOF" about the image and
// not about the network.
var rules = [...]rule{
	rulePilotFiles,
	ruleNoneFree,
	ruleStillAlive,
	ruleInvalidReference,
	ruleWebhook,
	ruleForbidden,
	ruleNoSuchPod,
	ruleUnreachableAPI,
	ruleRefusedPatch,
	ruleTimeout,
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

// Bounds on the kubelet's own further attempts to pull. It makes them 10, 20,
// 40 s ... apart, and tells of each some seconds later: three attempts see out a
// blip of half a minute, and attempts that each run into a timeout are not
// waited for for ever.
const (
	MaxTries    = 3
	maxPatience = 40 * time.Second
)

// IsFinal tells whether the kubelet's own further attempts should not be waited
// for.
func (j Judgement) IsFinal(now time.Time) bool {
	return !j.Again || j.Failure.Tries >= MaxTries || now.Sub(j.Failure.Since) >= maxPatience
}

// Verdict puts the judgement in the words of the contract. The cause is quoted
// in the message, hence not attached once more.
func (j Judgement) Verdict() *payload.Verdict {
	v := &payload.Verdict{Blame: payload.Site, Reason: j.Failure.Reason, Message: j.message()}
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

// message is one line: our sentence, and the words of those who reported.
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

// inPull tells failures to get an image from those to run it: only the former
// speak for or against the image's name.
func (f Failure) inPull() bool {
	switch f.Reason {
	case ReasonErrPull, ReasonPullBackOff, ReasonInvalidName, "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		return f.Origin == FromContainer
	}
	return false
}

// words is the message in lower case without the image's name, which is the
// user's to choose and must not decide who is to blame.
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

// says tells whether the message has one of the phrases, given in lower case.
func (f Failure) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(f.text, p) {
			return true
		}
	}
	return false
}

// OnPod is the judgement when no job will fare better.
func (j Judgement) OnPod(why string) Judgement {
	j.Class, j.Subcode, j.Says = ToPilot, 0, j.OfPod+" "+why
	return j
}
