package k8sexec

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"podstarter/payload"
)

// class is whose turn it is, finer than payload.Blame.
type class int

const (
	toUser      class = iota // the user has to change something: hold
	toElsewhere              // this may work in another pod or later: requeue
	toPilot                  // nothing will run in this pod until an admin acts: requeue
)

// judgement is what a rule makes of a failure.
type judgement struct {
	class class
	// subcode tells user failures apart for programs; see the Subcode constants.
	subcode int
	// says is a sentence or two: what happened, in the reader's words, and what to
	// do. The words of kubelet, runtime or registry are added to it.
	says string
	// again says that the kubelet's own next attempts may well succeed.
	again bool
	// form says that the way the image was written may be the cause: a tag beside
	// a digest is not understood everywhere.
	form bool
	// digest says that the digest may be the cause: registries drop old images when
	// their tag moves on.
	digest bool
	// suspect says that the image can bring this about as well as a pod out of
	// order; see lease.settle.
	suspect bool
	// cleared is the class once it is known that it was not the pod.
	cleared class
	// ofImage and ofPod are what a suspect's says becomes when it is known which
	// of the two it was.
	ofImage, ofPod string

	failure failure
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
type rule func(failure) (judgement, bool)

// suspicion is a judgement of class, with the words for each outcome.
func suspicion(class class, ofImage, ofPod string) judgement {
	j := judgement{class: class, suspect: true, ofImage: ofImage, ofPod: ofPod, says: ofPod}
	if class == toUser {
		j.subcode, j.says = SubcodeBadImage, ofImage
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

// judge asks the rules. The last one recognises everything.
func judge(f failure) judgement {
	f.text = f.words()
	for _, r := range rules {
		if j, ok := r(f); ok {
			j.failure = f
			return j
		}
	}
	return judgement{class: toElsewhere, says: "The payload container could not be prepared.", failure: f}
}

// Bounds on the kubelet's own further attempts to pull. It makes them 10, 20,
// 40 s ... apart, and tells of each some seconds later: three attempts see out a
// blip of half a minute, and attempts that each run into a timeout are not
// waited for for ever.
const (
	maxTries    = 3
	maxPatience = 40 * time.Second
)

// isFinal tells whether the kubelet's own further attempts should not be waited
// for.
func (j judgement) isFinal(now time.Time) bool {
	return !j.again || j.failure.tries >= maxTries || now.Sub(j.failure.since) >= maxPatience
}

// verdict puts the judgement in the words of the contract. The cause is quoted
// in the message, hence not attached once more.
func (j judgement) verdict() *payload.Verdict {
	v := &payload.Verdict{Blame: payload.Site, Reason: j.failure.reason, Message: j.message()}
	switch j.class {
	case toUser:
		v.Blame, v.Subcode = payload.User, j.subcode
	case toPilot:
		v.Blame = payload.Pilot
	}
	return v
}

// maxWords bounds what is quoted: an HTML page that a proxy sent instead of a
// manifest does not belong in a job's hold reason in full.
const maxWords = 1000

// message is one line: our sentence, and the words of those who reported.
func (j judgement) message() string {
	words := j.failure.message
	if words == "" && j.failure.err != nil {
		words = j.failure.err.Error()
	}
	words = strings.Join(strings.Fields(words), " ")
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	if words == "" {
		return j.says
	}
	return fmt.Sprintf("%s (%s)", j.says, words)
}

// inPull tells failures to get an image from those to run it: only the former
// speak for or against the image's name.
func (f failure) inPull() bool {
	switch f.reason {
	case reasonErrPull, reasonPullBackOff, reasonInvalidName, "RegistryUnavailable", "ImageInspectError", "SignatureValidationFailed":
		return f.origin == fromContainer
	}
	return false
}

// words is the message in lower case without the image's name, which is the
// user's to choose and must not decide who is to blame.
func (f failure) words() string {
	text := f.message
	for _, written := range []string{f.spec, f.image} {
		img, err := parseImage(written)
		if err != nil {
			continue
		}
		_, path, _ := strings.Cut(img.repository, "/")
		text = strings.NewReplacer(img.String(), "", img.repository, "", "/"+path+"/", "/").Replace(text)
		if img.tag != "" { // left over from URLs such as .../manifests/TAG
			text = regexp.MustCompile(`[:/]`+regexp.QuoteMeta(img.tag)+`\b`).ReplaceAllString(text, "")
		}
	}
	return strings.ToLower(text)
}

// says tells whether the message has one of the phrases, given in lower case.
func (f failure) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(f.text, p) {
			return true
		}
	}
	return false
}
