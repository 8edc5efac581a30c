// Package k8sexec runs payloads in a sibling container of the pilot's own pod. It
// leases a payload container, makes the kubelet run the wanted image in it by patching
// the pod, and says what went wrong when that fails.
//
// A binding goes through these states:
//
//	                 lease (flock, dies with the process)
//	                   │
//	    same image and owner, container known clean ──▶ reuse ──────────────┐
//	                   │ else                                               │
//	    choose the image string ◀── digests, default image ◀─ GET, seldom   │
//	                   │                                                    │
//	   ┌──────────▶  PATCH image + nonce ──▶ old wrapper told to leave      │
//	   │               │                                                    │
//	plain reference    ├─ wrapper announces the nonce ──────────────────────┤
//	after a refusal    ├─ status shows a failure of this image ─▶ rules ─▶ Verdict
//	   └───────────────┤                                                    │
//	                   └─ time is up ─▶ Verdict                             ▼
//	                                                          Container ─▶ Lost, Release
//
// The usual binding costs one PATCH. If the wrapper does not announce itself within a
// moment, or if the digest of a tag has to be learned, the backend opens a watch of the
// pod. The watch starts at the version that the patch returned, so it misses nothing.
// There are no calls while a job runs.
//
// The packages below are: podapi, the pod at the API server; verdict, what failures
// mean; audit, the checks of pod and pilot; imageref, options and privatedir. None of
// them imports this one.
//
// The permissions needed are get, watch and patch on the pilot's own pod.
package k8sexec
