package job

import (
	"podstarter/classads"
	"podstarter/condor/config"
)

const (
	maxPort = 65535
	// maxServices bounds how many services of a job are told.
	maxServices = 100
)

// PublishPorts tells on which ports of the execution point the services of a
// job in a container can be reached, in NAME_HostPort for each name of its
// ContainerServiceNames; undefined for one that does not run
// (condor_starter.V6.1/docker_proc.cpp:JobReaper, condor_utils/docker-api.cpp:
// getServicePorts). A pod has one network, so that the port is the container's
// own, NAME_ContainerPort. A service without a port is left out.
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
