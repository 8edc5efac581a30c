package corev1

// EnvVar is a variable of a container.
type EnvVar struct {
	Name      string        `json:"name"`
	Value     string        `json:"value,omitempty"`
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where the value comes from, if the pod's specification has none.
type EnvVarSource struct {
	FieldRef         *ObjectFieldSelector   `json:"fieldRef,omitempty"`
	ResourceFieldRef *ResourceFieldSelector `json:"resourceFieldRef,omitempty"`
	SecretKeyRef     *SecretKeySelector     `json:"secretKeyRef,omitempty"`
}

// ObjectFieldSelector names a field of the pod.
type ObjectFieldSelector struct {
	FieldPath string `json:"fieldPath"`
}

// ResourceFieldSelector names a resource of a container.
type ResourceFieldSelector struct {
	ContainerName string `json:"containerName,omitempty"`
	Resource      string `json:"resource"`
}

// SecretKeySelector names a key of a secret.
type SecretKeySelector struct {
	LocalObjectReference

	Key string `json:"key"`
}

// LocalObjectReference names an object of the pod's namespace.
type LocalObjectReference struct {
	Name string `json:"name,omitempty"`
}

// EnvFromSource gives a container several variables.
type EnvFromSource struct {
	Prefix       string              `json:"prefix,omitempty"`
	ConfigMapRef *ConfigMapEnvSource `json:"configMapRef,omitempty"`
	SecretRef    *SecretEnvSource    `json:"secretRef,omitempty"`
}

// ConfigMapEnvSource names a config map.
type ConfigMapEnvSource struct {
	LocalObjectReference
}

// SecretEnvSource names a secret.
type SecretEnvSource struct {
	LocalObjectReference
}

// Probe is how the kubelet asks a container whether it is well.
type Probe struct {
	Exec *ExecAction `json:"exec,omitempty"`
}

// ExecAction is a command that the kubelet runs in the container.
type ExecAction struct {
	Command []string `json:"command,omitempty"`
}

// Lifecycle are what the kubelet does in a container as it starts and before it ends.
type Lifecycle struct {
	PostStart *LifecycleHandler `json:"postStart,omitempty"`
	PreStop   *LifecycleHandler `json:"preStop,omitempty"`
}

// LifecycleHandler is one of these.
type LifecycleHandler struct {
	Exec *ExecAction `json:"exec,omitempty"`
}
