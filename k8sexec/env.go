package k8sexec

// PlatformEnv implements payload.Container. It names variables that the kubelet puts into every container,
// whatever its image says, a trailing '*' for all that begin so: those of the
// API server's own service come even with enableServiceLinks off (kubelet
// pkg/kubelet/kubelet_pods.go:getServiceEnvVarMap). A job that found them would
// take itself for a part of the cluster.
func (c *container) PlatformEnv() []string { return []string{"KUBERNETES_*"} }
