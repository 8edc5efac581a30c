package corev1

import "time"

// Pod is a pod as the API server gives it.
type Pod struct {
	ObjectMeta `json:"metadata"`

	Spec   PodSpec   `json:"spec,omitzero"`
	Status PodStatus `json:"status,omitzero"`
}

// UID names one pod for ever: a pod that is made again under the same name has another.
type UID string

// ObjectMeta is meta/v1 ObjectMeta. It has no managedFields, which are the larger part of
// many pods.
type ObjectMeta struct {
	Name              string            `json:"name,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               UID               `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	Generation        int64             `json:"generation,omitempty"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// PodSpec is what the pod was asked to be.
type PodSpec struct {
	Volumes                       []Volume               `json:"volumes,omitempty"`
	InitContainers                []Container            `json:"initContainers,omitempty"`
	Containers                    []Container            `json:"containers"`
	RestartPolicy                 RestartPolicy          `json:"restartPolicy,omitempty"`
	TerminationGracePeriodSeconds *int64                 `json:"terminationGracePeriodSeconds,omitempty"`
	ActiveDeadlineSeconds         *int64                 `json:"activeDeadlineSeconds,omitempty"`
	ServiceAccountName            string                 `json:"serviceAccountName,omitempty"`
	AutomountServiceAccountToken  *bool                  `json:"automountServiceAccountToken,omitempty"`
	NodeName                      string                 `json:"nodeName,omitempty"`
	HostNetwork                   bool                   `json:"hostNetwork,omitempty"`
	HostPID                       bool                   `json:"hostPID,omitempty"`
	HostIPC                       bool                   `json:"hostIPC,omitempty"`
	ShareProcessNamespace         *bool                  `json:"shareProcessNamespace,omitempty"`
	SecurityContext               *PodSecurityContext    `json:"securityContext,omitempty"`
	ImagePullSecrets              []LocalObjectReference `json:"imagePullSecrets,omitempty"`
	Tolerations                   []Toleration           `json:"tolerations,omitempty"`
	EnableServiceLinks            *bool                  `json:"enableServiceLinks,omitempty"`
	HostUsers                     *bool                  `json:"hostUsers,omitempty"`
	Resources                     *ResourceRequirements  `json:"resources,omitempty"`
}

// RestartPolicy says after which ends the kubelet starts the pod's containers again.
type RestartPolicy string

// The values of RestartPolicy.
const (
	RestartPolicyAlways    RestartPolicy = "Always"
	RestartPolicyOnFailure RestartPolicy = "OnFailure"
	RestartPolicyNever     RestartPolicy = "Never"
)

// DefaultTerminationGracePeriodSeconds is a pod's that names none.
const DefaultTerminationGracePeriodSeconds = 30

// Toleration lets a pod stay on nodes with a taint.
type Toleration struct {
	Key               string             `json:"key,omitempty"`
	Operator          TolerationOperator `json:"operator,omitempty"`
	Value             string             `json:"value,omitempty"`
	Effect            string             `json:"effect,omitempty"`
	TolerationSeconds *int64             `json:"tolerationSeconds,omitempty"`
}

// TolerationOperator says how a toleration's value is compared.
type TolerationOperator string

// TolerationOpExists compares no value.
const TolerationOpExists TolerationOperator = "Exists"

// PodStatus is what has become of the pod.
type PodStatus struct {
	ObservedGeneration    int64             `json:"observedGeneration,omitempty"`
	Phase                 PodPhase          `json:"phase,omitempty"`
	Conditions            []PodCondition    `json:"conditions,omitempty"`
	StartTime             *time.Time        `json:"startTime,omitempty"`
	Message               string            `json:"message,omitempty"`
	Reason                string            `json:"reason,omitempty"`
	InitContainerStatuses []ContainerStatus `json:"initContainerStatuses,omitempty"`
	ContainerStatuses     []ContainerStatus `json:"containerStatuses,omitempty"`
	QOSClass              PodQOSClass       `json:"qosClass,omitempty"`
}

// PodPhase is where the pod is in its life.
type PodPhase string

// The values of PodPhase that are its end.
const (
	PodSucceeded PodPhase = "Succeeded"
	PodFailed    PodPhase = "Failed"
)

// PodQOSClass says which pods the kubelet evicts first.
type PodQOSClass string

// PodQOSGuaranteed is the class of pods whose limits are their requests.
const PodQOSGuaranteed PodQOSClass = "Guaranteed"

// PodCondition is one thing that is so of a pod, or not.
type PodCondition struct {
	Type    PodConditionType `json:"type"`
	Status  ConditionStatus  `json:"status"`
	Reason  string           `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
}

// PodConditionType names a condition.
type PodConditionType string

// The conditions that a starter looks at.
const (
	DisruptionTarget    PodConditionType = "DisruptionTarget"
	PodResizePending    PodConditionType = "PodResizePending"
	PodResizeInProgress PodConditionType = "PodResizeInProgress"
)

// ConditionStatus says whether a condition is met.
type ConditionStatus string

// ConditionTrue: it is met.
const ConditionTrue ConditionStatus = "True"
