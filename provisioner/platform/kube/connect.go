package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podstarter/provisioner/template"
)

// Requests in a second to the API server, and how many at once. client-go's own
// limit of 5 would make a round of 1,000 pods last for minutes.
const (
	requests = 50
	burst    = 100
)

// Config says which cluster and which part of it.
type Config struct {
	// Name is the provisioner's.
	Name string
	// Namespace is where pods are made; empty is the account's own.
	Namespace string
	// GPU is the resource of a GPU; empty is DefaultGPU.
	GPU string
	// UserAgent is how the API server's log calls the program.
	UserAgent string
}

// Connect reaches the cluster by the pod's own account, or by KUBECONFIG.
func Connect(ctx context.Context, c Config, templates []template.Template) (*Cluster, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w; run in a pod with a service account, or set KUBECONFIG", err)
	}
	if c.Namespace == "" {
		if c.Namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("finding the namespace: %w", err)
		}
	}
	config.UserAgent, config.QPS, config.Burst = c.UserAgent, requests, burst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	gpu := DefaultGPU
	if c.GPU != "" {
		gpu = corev1.ResourceName(c.GPU)
	}
	return New(ctx, client, c.Name, c.Namespace, gpu, templates)
}
