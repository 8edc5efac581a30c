package kube

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"podstarter/provisioner/platform"
)

// former notes which units were made from another manifest than their template has now.
// Those of which that is not known count as made from this one.
func (c *Cluster) former(all []platform.Unit, jobs []*batchv1.Job, pods []*corev1.Pod) {
	made := map[string]string{}
	for _, p := range pods {
		made[owner(p)] = p.Annotations[noteManifest]
	}
	for _, j := range jobs {
		made[j.Name] = j.Annotations[noteManifest]
	}
	for i := range all {
		u := &all[i]
		m, known := c.manifests[u.Template]
		u.Former = known && made[u.Name] != "" && made[u.Name] != m.digest
	}
}
