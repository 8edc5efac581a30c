package corev1

import "time"

// Container is one of a pod's containers, as the pod asks for it.
type Container struct {
	Name            string                  `json:"name"`
	Image           string                  `json:"image,omitempty"`
	Command         []string                `json:"command,omitempty"`
	Args            []string                `json:"args,omitempty"`
	WorkingDir      string                  `json:"workingDir,omitempty"`
	EnvFrom         []EnvFromSource         `json:"envFrom,omitempty"`
	Env             []EnvVar                `json:"env,omitempty"`
	Resources       ResourceRequirements    `json:"resources,omitzero"`
	ResizePolicy    []ContainerResizePolicy `json:"resizePolicy,omitempty"`
	RestartPolicy   *ContainerRestartPolicy `json:"restartPolicy,omitempty"`
	VolumeMounts    []VolumeMount           `json:"volumeMounts,omitempty"`
	VolumeDevices   []VolumeDevice          `json:"volumeDevices,omitempty"`
	LivenessProbe   *Probe                  `json:"livenessProbe,omitempty"`
	ReadinessProbe  *Probe                  `json:"readinessProbe,omitempty"`
	StartupProbe    *Probe                  `json:"startupProbe,omitempty"`
	Lifecycle       *Lifecycle              `json:"lifecycle,omitempty"`
	ImagePullPolicy PullPolicy              `json:"imagePullPolicy,omitempty"`
	SecurityContext *SecurityContext        `json:"securityContext,omitempty"`
}

// ContainerRestartPolicy is the restart policy of one container.
type ContainerRestartPolicy string

// ContainerRestartPolicyAlways makes an init container a sidecar.
const ContainerRestartPolicyAlways ContainerRestartPolicy = "Always"

// ContainerResizePolicy says what becomes of the container when a limit of it changes.
type ContainerResizePolicy struct {
	ResourceName  ResourceName                `json:"resourceName"`
	RestartPolicy ResourceResizeRestartPolicy `json:"restartPolicy"`
}

// ResourceResizeRestartPolicy says whether it is restarted then.
type ResourceResizeRestartPolicy string

// NotRequired: it goes on.
const NotRequired ResourceResizeRestartPolicy = "NotRequired"

// PullPolicy says when the kubelet pulls the image.
type PullPolicy string

// The values of PullPolicy.
const (
	PullAlways       PullPolicy = "Always"
	PullNever        PullPolicy = "Never"
	PullIfNotPresent PullPolicy = "IfNotPresent"
)

// ContainerStatus is what has become of a container.
type ContainerStatus struct {
	Name                 string                `json:"name"`
	State                ContainerState        `json:"state,omitzero"`
	LastTerminationState ContainerState        `json:"lastState,omitzero"`
	Ready                bool                  `json:"ready"`
	RestartCount         int32                 `json:"restartCount"`
	Image                string                `json:"image"`
	ImageID              string                `json:"imageID"`
	ContainerID          string                `json:"containerID,omitempty"`
	Started              *bool                 `json:"started,omitempty"`
	Resources            *ResourceRequirements `json:"resources,omitempty"`
}

// ContainerState is one of three.
type ContainerState struct {
	Waiting    *ContainerStateWaiting    `json:"waiting,omitempty"`
	Running    *ContainerStateRunning    `json:"running,omitempty"`
	Terminated *ContainerStateTerminated `json:"terminated,omitempty"`
}

// ContainerStateWaiting is of a container that does not run yet.
type ContainerStateWaiting struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ContainerStateRunning is of a container that runs.
type ContainerStateRunning struct {
	StartedAt time.Time `json:"startedAt,omitzero"`
}

// ContainerStateTerminated is of a container that has ended.
type ContainerStateTerminated struct {
	ExitCode    int32     `json:"exitCode"`
	Signal      int32     `json:"signal,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	StartedAt   time.Time `json:"startedAt,omitzero"`
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	ContainerID string    `json:"containerID,omitempty"`
}
