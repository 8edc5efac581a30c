package k8sexec

// PlatformEnv implements payload.Container. It names the variables that the kubelet
// puts into every container, whatever its image; a trailing '*' means all that begin
// so. The kubelet sets those of the API server's own service even with
// enableServiceLinks off (kubelet pkg/kubelet/kubelet_pods.go:getServiceEnvVarMap). A
// job that found them would believe that it may use the cluster.
func (c *container) PlatformEnv() []string { return []string{"KUBERNETES_*"} }
