package chart

// A combination is a glidein that both can make.
type combination struct {
	// folder and components are those of deploy/. The list is as a site writes it.
	folder     string
	components []string
	// kustomization is more of it: what docs/ tell a site to add or to edit.
	kustomization string
	// values are those of the chart.
	values string
}

// combinations are those of deploy/, and what sites do with each value.
var combinations = map[string]combination{
	"pod":            {folder: "glidein"},
	"unshared":       {folder: "glidein-unshared", values: "mode: unshared"},
	"job":            {folder: "glidein-job", values: "kind: job"},
	"deployment":     {folder: "glidein-deployment", values: "kind: deployment"},
	"sidecars":       {folder: "glidein", components: []string{"sidecars"}, values: "payload: {sidecars: true}"},
	"spares":         {folder: "glidein", components: []string{"spares"}, values: "payload: {spares: 2, requests: {cpu: 340m, memory: 700Mi, disk: 3500Mi}}"},
	"GPU":            {folder: "glidein", components: []string{"gpu"}, values: "gpus: {count: 1}"},
	"resize":         {folder: "glidein", components: []string{"resize"}, values: "resize: {enabled: true}"},
	"metrics":        {folder: "glidein", components: []string{"metrics"}, values: "metrics: true"},
	"events":         {folder: "glidein", components: []string{"events"}, values: "events: true"},
	"user namespace": {folder: "glidein", components: []string{"user-namespace"}, values: "userNamespace: true"},
	"network policy": {folder: "glidein", components: []string{"network-policy"}, values: "networkPolicy: true"},
	"OpenShift":      {folder: "glidein", components: []string{"openshift"}, values: "openshift: true"},
	"pull secret":    {folder: "glidein", components: []string{"pull-secret"}, values: "imagePullSecrets: [{name: registry-credentials}]"},
	"tolerations": {
		folder: "glidein", components: []string{"tolerations"},
		values: "tolerations: [{key: dedicated, operator: Equal, value: batch, effect: NoSchedule}]",
	},
	"priority": {folder: "glidein", components: []string{"priority"}, values: "priorityClassName: podstarter-glidein"},
	"affinity": {folder: "glidein", components: []string{"node-affinity"}, values: `
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: node-role.kubernetes.io/batch, operator: Exists}]}]
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {app.kubernetes.io/name: podstarter, app.kubernetes.io/component: glidein}}`},
	"NFS": {folder: "glidein", components: []string{"nfs"}, values: `
volumes: [{name: data, nfs: {server: nfs.example.org, path: /export/data, readOnly: true}}]
payload: {volumeMounts: [{name: data, mountPath: /data, readOnly: true}]}`},
	"GPU of AMD": {
		folder: "glidein", components: []string{"gpu"}, values: "gpus: {count: 1, resource: amd.com/gpu}", kustomization: `
patches:
  - target: {kind: Pod}
    patch: |
      - {op: move, from: /spec/containers/1/resources/limits/nvidia.com~1gpu, path: /spec/containers/1/resources/limits/amd.com~1gpu}
      - {op: add, path: /spec/containers/1/env/-, value: {name: NVIDIA_VISIBLE_DEVICES, value: void}}`,
	},
	"sidecars with spares": {
		folder: "glidein", components: []string{"spares", "sidecars", "sidecars/spares"},
		values: "payload: {sidecars: true, spares: 2, requests: {cpu: 340m, memory: 700Mi, disk: 3500Mi}}",
	},
	"job with all that sites add": {
		folder: "glidein", components: []string{"pull-secret", "tolerations", "spares", "sidecars", "sidecars/spares", "metrics", "one-role", "resize", "resize/one-role", "events", "openshift", "job"},
		values: `
kind: job
payload: {spares: 2, requests: {cpu: 340m, memory: 700Mi, disk: 3500Mi}}
imagePullSecrets: [{name: registry-credentials}]
tolerations: [{key: dedicated, operator: Equal, value: batch, effect: NoSchedule}]
metrics: true
events: true
openshift: true
resize: {enabled: true}`,
	},
	"deployment with all that sites add": {
		folder: "glidein", components: []string{"priority", "user-namespace", "gpu", "metrics", "one-role", "events", "deployment", "disruption-budget", "network-policy"},
		values: `
kind: deployment
priorityClassName: podstarter-glidein
userNamespace: true
gpus: {count: 1}
metrics: true
events: true
deployment: {disruptionBudget: true}
networkPolicy: true`,
	},
}

// notInChart are the folders of deploy/ that no combination has, and why.
var notInChart = map[string]string{
	"glidein-rootless":               "it changes every part of the pod, for sites that may not have root; those use kustomize",
	"components/gpu-claim":           "the claim is the cluster's own, by its driver's device class; such sites use kustomize",
	"components/ospool":              "its program makes configuration of variables before HTCondor starts, which is more than a value",
	"components/cvmfs":               "it is a volume of the site's driver: `volumes` and `payload.volumeMounts`, as NFS",
	"components/pool-network-policy": "it is of the central services, which are not in the chart",
	"components/provisioner-tokens":  "it is a right of the provisioner, which the chart does not have",
	"components/pool-priority":       "it is of the central services, which are not in the chart",
}
