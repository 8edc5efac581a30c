package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"podstarter/provisioner/platform/kube/lease"
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
	// Mint makes the tokens of templates that have some.
	Mint Mint
}

// LogTo sends to a log what client-go would write to standard error in a form of
// its own.
func LogTo(log *slog.Logger) { klog.SetSlogLogger(log) }

// reach returns how the cluster is reached, by the pod's own account or by
// KUBECONFIG, and the namespace.
func (c Config) reach() (*rest.Config, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reaching the cluster: %w; run in a pod with a service account, or set KUBECONFIG", err)
	}
	namespace := c.Namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", fmt.Errorf("finding the namespace: %w", err)
		}
	}
	config.UserAgent, config.QPS, config.Burst = c.UserAgent, requests, burst
	return config, namespace, nil
}

// Connect reaches the cluster.
func Connect(ctx context.Context, c Config, templates []template.Template) (*Cluster, error) {
	config, namespace, err := c.reach()
	if err != nil {
		return nil, err
	}
	client, err := newClients(config)
	if err != nil {
		return nil, err
	}
	return New(ctx, client, c.Name, namespace, c.gpu(), templates, c.Mint)
}

func (c Config) gpu() corev1.ResourceName {
	if c.GPU == "" {
		return DefaultGPU
	}
	return corev1.ResourceName(c.GPU)
}

// Check checks the manifests of templates without a cluster.
func Check(c Config, templates []template.Template) error {
	for _, t := range templates {
		if _, err := parse(t, c.gpu()); err != nil {
			return err
		}
	}
	return nil
}

// Elect returns the election of the one provisioner of this name that makes pods.
// It has a connection of its own, which calls for pods do not keep waiting.
func Elect(ctx context.Context, c Config, name string, duration time.Duration, log *slog.Logger) (*lease.Election, error) {
	config, namespace, err := c.reach()
	if err != nil {
		return nil, err
	}
	// A call that gets no answer must leave time for another one.
	config.Timeout = duration / 3
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	return lease.New(ctx, lease.Config{Client: client, Namespace: namespace, Name: name, Identity: lease.Identity(), Duration: duration, Log: log})
}
