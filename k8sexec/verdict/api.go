package verdict

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
)

// ruleWebhook: an admission webhook or policy of the cluster denied the patch, or could
// not be asked. Only the words show which it is: denials come as 403 or 422 with the
// words below (apiserver admission/plugin/webhook/errors, .../policy).
//
// A denial that names the image is about the image: the user chose it and can choose
// another. Other denials are about the pod or the pilot, as is one that the policy
// would issue for every image.
func ruleWebhook(f Failure) (Judgement, bool) {
	if !IsAdmission(f) {
		return Judgement{}, false
	}
	switch {
	case f.says("failed calling webhook"):
		return Judgement{Class: ToElsewhere, Form: true, Says: "The cluster's admission webhook did not answer, so that the pod could not be changed."}, true
	case f.says("validatingadmissionpolicy '" + pilotPolicy + "'"):
		return Judgement{Class: ToPilot, Says: "The cluster's policy " + pilotPolicy + " does not let this pilot put images into its own pod; run condor_pod_starter -check there."}, true
	case imageref.Named(f.Message, f.Spec), imageref.Named(f.Message, f.Image):
		return Judgement{Class: ToUser, Subcode: SubcodePolicy, Form: true,
			Says: fmt.Sprintf("A policy of the cluster does not allow running the image %q here; use one that it allows, or ask the site to allow this one.", f.Image)}, true
	}
	return Judgement{Class: ToElsewhere, Form: true,
		Says: fmt.Sprintf("The cluster's admission control does not let this pod run the image %q; allow the image there, or keep such jobs away from this pod.", f.Image)}, true
}

// pilotPolicy is the name of the policy that confines pilots to their own pods
// (deploy/policy).
const pilotPolicy = "podstarter-pilot"

// IsAdmission says whether admission control refused the call, and not RBAC.
func IsAdmission(f Failure) bool {
	return f.Origin == FromAPI && f.says("admission webhook", "validatingadmissionpolicy", "failed calling webhook", "image policy webhook")
}

// ruleForbidden: the API server knows the pilot's token but grants it too little,
// or does not know it.
func ruleForbidden(f Failure) (Judgement, bool) {
	if f.Origin != FromAPI || f.Code != http.StatusForbidden && f.Code != http.StatusUnauthorized {
		return Judgement{}, false
	}
	j := Judgement{Class: ToPilot, Says: "The pilot's service account lacks permission on its own pod; its Role must allow get, watch and patch on pods with this name."}
	if f.Code == http.StatusUnauthorized {
		j.Says = "The API server does not accept the pilot's token; check the projected token in " + options.KnobKubernetesDir + "."
	}
	return j, true
}

// ruleNoSuchPod: the pod, or the payload container in it, does not exist under the
// configured name. The API server reports the latter as an attempt to add a container
// (validation.go:ValidatePodUpdate).
func ruleNoSuchPod(f Failure) (Judgement, bool) {
	switch {
	case f.Origin == FromAPI && f.Code == http.StatusNotFound:
		return Judgement{Class: ToPilot, Says: "The pilot's pod does not exist under the configured name; correct " + options.KnobPodName + " or " + options.KnobPodNamespace + "."}, true
	case f.Reason == ReasonNoContainer,
		f.Origin == FromAPI && f.Code == http.StatusUnprocessableEntity && f.says("may not add or remove containers"):
		return Judgement{Class: ToPilot, Says: "The pod has no payload container of the configured name; correct " + options.KnobContainers + "."}, true
	}
	return Judgement{}, false
}

// ruleUnreachableAPI: the API server could not be reached, or did not answer the call,
// for as long as a binding waits.
func ruleUnreachableAPI(f Failure) (Judgement, bool) {
	if f.Origin != FromAPI || f.Code != 0 && f.Code < http.StatusInternalServerError &&
		f.Code != http.StatusTooManyRequests && f.Code != http.StatusConflict {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "The Kubernetes API server cannot be used at the moment; the job may run elsewhere or later."}, true
}

// ruleRefusedPatch: any other refusal of the API server, for instance because its
// version does not let that field change.
func ruleRefusedPatch(f Failure) (Judgement, bool) {
	if f.Origin != FromAPI {
		return Judgement{}, false
	}
	return Judgement{Class: ToPilot, Form: true, Says: fmt.Sprintf("The Kubernetes API server refuses to put image %q into the pod.", f.Image)}, true
}

// OfAPI turns an error of an API call into a failure that the rules can read.
func OfAPI(err error) *Failure {
	f := &Failure{Origin: FromAPI, Reason: ReasonUnreachable, Message: err.Error(), Err: err}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		f.Code, f.Message, f.Reason = int(s.Code), s.Message, string(s.Reason)
	}
	return f
}

// Worded completes a failure so that the rules can read it.
func Worded(err error) Failure {
	f := *OfAPI(err)
	f.text = f.words()
	return f
}
