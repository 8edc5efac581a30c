package job

import (
	"podstarter/classads"
	"podstarter/condor/config"
)

const (
	maxPort = 65535
	// maxServices bounds the services of a job that are published.
	maxServices = 100
)

// PublishPorts publishes the ports of the execution point on which the services
// of a job in a container can be reached, as NAME_HostPort for each name of its
// ContainerServiceNames; undefined if the job does not run
// (condor_starter.V6.1/docker_proc.cpp:JobReaper, condor_utils/docker-api.cpp:
// getServicePorts). A pod has one network, so the port is the container's own,
// NAME_ContainerPort. A service without a port is left out.
func PublishPorts(ad, jobAd *classads.Ad, runs bool) {
	names := config.Split(jobAd.StringOr("ContainerServiceNames", ""))
	for _, name := range names[:min(len(names), maxServices)] {
		port := jobAd.IntOr(name+"_ContainerPort", 0)
		switch {
		case port < 1 || port > maxPort:
		case runs:
			ad.SetInt(name+"_HostPort", port)
		default:
			_ = ad.SetExpr(name+"_HostPort", "undefined")
		}
	}
}
