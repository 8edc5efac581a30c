package verdict

import (
	"fmt"
	"regexp"
	"runtime"
	"sync"
)

// ruleInvalidReference: the image's name does not parse, here or in the kubelet (reason
// InvalidImageName) or in the container runtime. If only the latter two reject it, they
// may not understand the form with tag and digest.
func ruleInvalidReference(f Failure) (Judgement, bool) {
	if f.Origin != FromRequest && f.Reason != ReasonInvalidName &&
		!(f.inPull() && f.says("invalid reference format", "repository name must be lowercase", "failed to parse image reference",
			"references with both a tag and digest", "couldn't parse image")) {
		return Judgement{}, false
	}
	return Judgement{
		Class: ToUser, Subcode: SubcodeInvalidReference, Form: true,
		Says: fmt.Sprintf("The image name %q is not valid; write it as registry/name:tag or registry/name@sha256:digest.", f.Image),
	}, true
}

// ruleNeverPull: the pod's pull policy forbids the pulls that late binding needs.
func ruleNeverPull(f Failure) (Judgement, bool) {
	if f.Reason != reasonNeverPull {
		return Judgement{}, false
	}
	return Judgement{Class: ToPilot, Says: "The payload container's imagePullPolicy is Never, and the image is not on the node; set it to IfNotPresent in the pod's manifest."}, true
}

// ruleRateLimit: the registry limits the number of requests. More attempts of the
// kubelet would only make it worse.
func ruleRateLimit(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("429 too many requests", "toomanyrequests", "rate limit", "pull qps exceeded", "status code 429") {
		return Judgement{}, false
	}
	// The kubelet's own limit (registryPullQPS) is over in a moment.
	return Judgement{Class: ToElsewhere, Again: f.says("pull qps exceeded"),
		Says: fmt.Sprintf("The registry of image %q has had too many requests from here; use a mirror, or give the pod credentials.", f.Image)}, true
}

// serverError finds an answer of the class 5xx in a message. Few starters need it.
var serverError = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(status|code|response)[^0-9\n]{0,40}\b5\d\d\b|\b5\d\d (internal server error|not implemented|bad gateway|service unavailable|service temporarily unavailable|gateway time-?out)`)
})

// ruleRegistryDown: the registry, its token server or a proxy answers that it cannot
// serve the request.
func ruleRegistryDown(f Failure) (Judgement, bool) {
	if !f.inPull() || f.Reason != "RegistryUnavailable" && !serverError().MatchString(f.text) {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Again: true, Says: fmt.Sprintf("The registry of image %q is out of order.", f.Image)}, true
}

// ruleTLS: the registry's certificate is not accepted on this node, or one side
// speaks TLS and the other does not.
func ruleTLS(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("x509:", "tls:", "remote error: tls", "server gave http response to https client", "certificate") || f.says("tls handshake timeout") {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: fmt.Sprintf(
		"This node does not trust the registry of image %q, or does not reach it by TLS; configure the registry in the node's container runtime.", f.Image)}, true
}

// ruleDNS: the registry's name does not resolve on this node. It may be misspelt,
// but nodes whose resolver is broken say the same.
func ruleDNS(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("no such host", "server misbehaving", "name resolution", "lookup ") {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Again: true, Says: fmt.Sprintf(
		"The name of the registry in %q cannot be resolved on this node; check its spelling if this happens everywhere.", f.Image)}, true
}

// ruleNetwork: no connection to the registry, or one that broke.
func ruleNetwork(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("connection refused", "connection reset", "no route to host", "network is unreachable", "i/o timeout",
		"tls handshake timeout", "deadline exceeded", "timeout exceeded", "timed out", "unexpected eof", ": eof", "broken pipe",
		"connection closed", "goaway", "unexpected commit digest", "failed size validation", "proxyconnect") {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Again: true, Says: fmt.Sprintf("The registry of image %q cannot be reached from this node.", f.Image)}, true
}

// ruleSignature: the node runs signed images only.
func ruleSignature(f Failure) (Judgement, bool) {
	if !f.inPull() || f.Reason != "SignatureValidationFailed" && !f.says("source image rejected", "signature was required") {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodeSignature,
		Says: fmt.Sprintf("The image %q does not have a signature that this site accepts.", f.Image)}, true
}

// rulePlatform: the image exists, but not for this node's processor.
func rulePlatform(f Failure) (Judgement, bool) {
	if f.Reason != ReasonPlatform && (!f.inPull() || !f.says("no match for platform", "no matching manifest", "does not match the specified platform",
		"no image found in image index for architecture", "no image found in manifest list for architecture")) {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodePlatform, Says: fmt.Sprintf(
		"The image %q has no variant for %s/%s; build one, or require machines of the image's architecture.", f.Image, runtime.GOOS, runtime.GOARCH)}, true
}

// ruleDenied: the registry does not give the image to this node. Registries that hide
// from strangers which repositories exist give the same answer for a name that does not
// exist.
func ruleDenied(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("401 unauthorized", "403 forbidden", "unauthorized", "denied", "insufficient_scope", "authentication required",
		"authorization failed", "no basic auth credentials", "invalid username/password") {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodeDenied, Digest: true, Says: fmt.Sprintf(
		"The registry does not allow pulling image %q, or there is no such image; check the name, and whether the image is public.", f.Image)}, true
}

// ruleNotFound: the registry answers that there is no such image.
func ruleNotFound(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says(": not found", "manifest unknown", "name unknown", "name_unknown", "manifest_unknown", "404 not found",
		"repository does not exist", "repository not known", "tag does not exist") {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodeNotFound, Digest: true, Says: fmt.Sprintf(
		"The image %q does not exist in its registry; check the name and the tag.", f.Image)}, true
}

// rulePullStalled: the runtime gave up a pull that made no progress
// (containerd image_pull_progress_timeout), or was interrupted in it.
func rulePullStalled(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("context canceled", "no progress", "operation was canceled") {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Again: true, Says: fmt.Sprintf("The pull of image %q stalled.", f.Image)}, true
}

// ruleUnknown: everything else. Holding a job for a failure that no rule recognises
// would often be wrong.
func ruleUnknown(f Failure) (Judgement, bool) {
	return Judgement{Class: ToElsewhere, Again: f.Origin == FromContainer, Form: f.inPull(),
		Says: fmt.Sprintf("The payload container could not be started with image %q.", f.Image)}, true
}
