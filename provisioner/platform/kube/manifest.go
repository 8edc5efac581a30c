package kube

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

// Labels and annotations of what a provisioner makes. Names of submitters are no
// values of labels.
const (
	labelProvisioner = "provisioner.podstarter/name"
	labelUnit        = "provisioner.podstarter/unit"
	labelTemplate    = "provisioner.podstarter/template"
	labelShape       = "provisioner.podstarter/shape"
	noteUser         = "provisioner.podstarter/user"
	noteGroup        = "provisioner.podstarter/group"
	noteSize         = "provisioner.podstarter/size"
	noteManifest     = "provisioner.podstarter/manifest"
)

// payload is the name of the first payload container; the others are payload-2
// and so on.
const payload = "payload"

// manifest is the parsed manifest of a template: one of both is set.
type manifest struct {
	job *batchv1.Job
	pod *corev1.Pod
	gpu corev1.ResourceName
	// digest is another one for each text.
	digest string
	// token is what each unit has a Secret for, or nil.
	token *template.Token
}

// parse reads the manifest of a template and checks what the provisioner relies
// on.
func parse(t template.Template, gpu corev1.ResourceName) (manifest, error) {
	fail := func(err error) (manifest, error) {
		return manifest{}, fmt.Errorf("reading %s of the template %s: %w", t.File, t.Name, err)
	}
	text, kind, err := theOne(t.Manifest)
	if err != nil {
		return fail(err)
	}
	sum := sha256.Sum256([]byte(t.Manifest))
	m := manifest{gpu: gpu, digest: hex.EncodeToString(sum[:8]), token: t.Token}
	var pod *corev1.PodSpec
	switch kind {
	case jobKind:
		m.job = &batchv1.Job{}
		if err := yaml.UnmarshalStrict(text, m.job); err != nil {
			return fail(err)
		}
		if n := m.job.Spec.Parallelism; n != nil && *n != 1 {
			return fail(fmt.Errorf("the Job has parallelism %d; each unit is one pod, so take it out", *n))
		}
		if n := m.job.Spec.Completions; n != nil && *n != 1 {
			return fail(fmt.Errorf("the Job has completions %d; each unit is one pod, so take it out", *n))
		}
		if err := limit(&m.job.Spec); err != nil {
			return fail(err)
		}
		pod = &m.job.Spec.Template.Spec
	case podKind:
		m.pod = &corev1.Pod{}
		if err := yaml.UnmarshalStrict(text, m.pod); err != nil {
			return fail(err)
		}
		pod = &m.pod.Spec
	}
	if n := len(payloads(pod)); n != t.Slots+t.Spares {
		return fail(fmt.Errorf("it has %d containers %s, %s-2 and so on, and the template says slots: %d, spares: %d", n, payload, payload, t.Slots, t.Spares))
	}
	if err := checkToken(pod, t.Token); err != nil {
		return fail(err)
	}
	return m, nil
}

// The kinds of objects of which a manifest must have one.
const (
	jobKind = "batch/v1 Job"
	podKind = "v1 Pod"
)

// theOne returns the Job or the pod of a manifest. Other objects may be beside it,
// so that a manifest can be what `kubectl kustomize` prints: the provisioner makes
// none of them.
func theOne(manifest string) (text []byte, kind string, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	var others []string
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		var is metav1.TypeMeta
		if err := yaml.Unmarshal(document, &is); err != nil {
			return nil, "", err
		}
		switch k := is.APIVersion + " " + is.Kind; k {
		case jobKind, podKind:
			if text != nil {
				return nil, "", fmt.Errorf("it has more than one Job or Pod; each template makes one kind of pods")
			}
			text, kind = document, k
		case " ": // nothing but comments
		default:
			others = append(others, fmt.Sprintf("a %s of %s", is.Kind, is.APIVersion))
		}
	}
	if text == nil {
		return nil, "", fmt.Errorf("it has %s; one must be a Job of batch/v1 or a Pod of v1", cmp.Or(shortest(strings.Join(others, ", "), maxDetail), "no object"))
	}
	return text, kind, nil
}

// limit sets how often the Job controller tries again. Kubernetes' own default is 6.
func limit(job *batchv1.JobSpec) error {
	want, why := int32(0), "the provisioner makes another Job when it is time for it"
	if job.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		// The controller counts each container that is started anew, as those of
		// payloads are for each job (job_controller.go: pastBackoffLimitOnFailure). Pods
		// whose containers start again do not fail by themselves.
		want, why = math.MaxInt32, "with restartPolicy OnFailure each start of a payload container counts"
	}
	if n := job.BackoffLimit; n != nil && *n != want {
		return fmt.Errorf("the Job has backoffLimit %d; %s, so take it out or write %d", *n, why, want)
	}
	job.BackoffLimit = &want
	return nil
}

// payloads returns the payload containers of a pod, sidecars among them.
func payloads(pod *corev1.PodSpec) []*corev1.Container {
	var found []*corev1.Container
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if c := &list[i]; payloadName(c.Name) {
				found = append(found, c)
			}
		}
	}
	return found
}

// payloadName reports whether a container is a payload container, by its name.
func payloadName(name string) bool { return name == payload || strings.HasPrefix(name, payload+"-") }

// meta fills in the metadata of a unit's object.
func meta(into *metav1.ObjectMeta, provisioner, namespace string, s platform.Spec) {
	into.Name, into.GenerateName, into.Namespace = s.Name, "", namespace
	into.ResourceVersion, into.UID, into.OwnerReferences = "", "", nil
	describe(into, provisioner, s)
}

// describe adds what must be known of a unit.
func describe(into *metav1.ObjectMeta, provisioner string, s platform.Spec) {
	set := func(m *map[string]string, key, value string) {
		if *m == nil {
			*m = map[string]string{}
		}
		(*m)[key] = value
	}
	set(&into.Labels, labelProvisioner, provisioner)
	set(&into.Labels, labelUnit, s.Name)
	set(&into.Labels, labelTemplate, s.Template)
	set(&into.Labels, labelShape, s.Shape)
	set(&into.Annotations, noteUser, s.User)
	set(&into.Annotations, noteGroup, s.Group)
	set(&into.Annotations, noteSize, fmt.Sprintf("%d %d %d %d", s.Size.CPUs, s.Size.Memory, s.Size.Disk, s.Size.GPUs))
}

// spec reads back what describe has written. Whoever may change the object can
// make it say anything, so a number that makes no sense is zero.
func spec(m metav1.ObjectMeta, name string) platform.Spec {
	s := platform.Spec{
		Name: name, Template: m.Labels[labelTemplate], Shape: m.Labels[labelShape],
		User: m.Annotations[noteUser], Group: m.Annotations[noteGroup],
	}
	var a resources.Amount
	if n, err := fmt.Sscanf(m.Annotations[noteSize], "%d %d %d %d", &a.CPUs, &a.Memory, &a.Disk, &a.GPUs); err == nil && n == 4 {
		s.Size = a
	}
	return s
}

// fit gives the payload containers of a pod the size of a shape.
func (m manifest) fit(pod *corev1.PodSpec, size resources.Amount) {
	quantities := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(size.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(size.Memory<<20, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(size.Disk<<10, resource.BinarySI),
	}
	if size.GPUs > 0 {
		quantities[m.gpu] = *resource.NewQuantity(size.GPUs, resource.DecimalSI)
	}
	for _, c := range payloads(pod) {
		requests, limits := c.Resources.Requests, c.Resources.Limits
		// What the manifest says of other resources stays.
		c.Resources.Requests, c.Resources.Limits = maps.Clone(requests), maps.Clone(limits)
		for _, list := range []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
		}
		for name, q := range quantities {
			c.Resources.Limits[name] = q.DeepCopy()
			c.Resources.Requests[name] = part(q, requests[name], limits[name])
		}
	}
}

// part returns what is requested of an amount: the part of it that the manifest
// requests of its limit. A site that requests half a CPU for a container that may
// use one gets two requested for four.
func part(amount, request, limit resource.Quantity) resource.Quantity {
	r := amount.DeepCopy()
	if request.Sign() <= 0 || limit.Sign() <= 0 || request.Cmp(limit) >= 0 {
		return r
	}
	share := request.AsApproximateFloat64() / limit.AsApproximateFloat64()
	if amount.Format == resource.DecimalSI { // CPUs
		return *resource.NewMilliQuantity(max(int64(math.Ceil(float64(amount.MilliValue())*share)), 1), amount.Format)
	}
	return *resource.NewQuantity(max(int64(math.Ceil(float64(amount.Value())*share)), 1), amount.Format)
}

// build returns the object of a unit: a Job or a Pod.
func (m manifest) build(provisioner, namespace string, s platform.Spec) (*batchv1.Job, *corev1.Pod) {
	if m.job != nil {
		job := m.job.DeepCopy()
		job.Status = batchv1.JobStatus{}
		meta(&job.ObjectMeta, provisioner, namespace, s)
		job.Annotations[noteManifest] = m.digest
		describe(&job.Spec.Template.ObjectMeta, provisioner, s)
		m.fit(&job.Spec.Template.Spec, s.Size)
		m.own(&job.Spec.Template.Spec, s.Name)
		return job, nil
	}
	pod := m.pod.DeepCopy()
	pod.Status = corev1.PodStatus{}
	meta(&pod.ObjectMeta, provisioner, namespace, s)
	pod.Annotations[noteManifest] = m.digest
	m.fit(&pod.Spec, s.Size)
	m.own(&pod.Spec, s.Name)
	return nil, pod
}

// shortest is the shorter of a text and its first bytes, for messages.
func shortest(text string, most int) string {
	text = strings.Join(slices.Collect(strings.FieldsSeq(text)), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return text
}
