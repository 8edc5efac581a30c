package kube

import (
	"fmt"

	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	batchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Clients are those of the API groups that a provisioner needs, as client-go/kubernetes has them.
// That package has the clients of all groups: 10 MB of the program.
type Clients interface {
	AuthorizationV1() authorizationv1.AuthorizationV1Interface
	BatchV1() batchv1.BatchV1Interface
	CoreV1() corev1.CoreV1Interface
}

// clients is Clients by one connection.
type clients struct {
	authorization *authorizationv1.AuthorizationV1Client
	batch         *batchv1.BatchV1Client
	core          *corev1.CoreV1Client
}

func (c *clients) AuthorizationV1() authorizationv1.AuthorizationV1Interface { return c.authorization }
func (c *clients) BatchV1() batchv1.BatchV1Interface                         { return c.batch }
func (c *clients) CoreV1() corev1.CoreV1Interface                            { return c.core }

// newClients makes no call.
func newClients(config *rest.Config) (Clients, error) {
	failed := func(err error) (Clients, error) { return nil, fmt.Errorf("reaching the cluster: %w", err) }
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return failed(err)
	}
	// One limit of requests for all.
	if config.RateLimiter == nil && config.QPS > 0 {
		config = rest.CopyConfig(config)
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	c := new(clients)
	if c.authorization, err = authorizationv1.NewForConfigAndClient(config, shared); err != nil {
		return failed(err)
	}
	if c.batch, err = batchv1.NewForConfigAndClient(config, shared); err != nil {
		return failed(err)
	}
	if c.core, err = corev1.NewForConfigAndClient(config, shared); err != nil {
		return failed(err)
	}
	return c, nil
}
