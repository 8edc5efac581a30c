// Package verdict says what it means that a binding failed or a container was lost:
// who has to mend it, and how. It goes by the words of the API server, the kubelet,
// the container runtime and the registry. Each rule recognises one kind of failure;
// its file is named after whom the words come from.
package verdict
