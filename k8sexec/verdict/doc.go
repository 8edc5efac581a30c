// Package verdict interprets the failure of a binding or the loss of a container: who
// has to act, and how. It goes by the messages of the API server, the kubelet, the
// container runtime and the registry. Each rule recognises one kind of failure; its
// file is named after the source of the message.
package verdict
