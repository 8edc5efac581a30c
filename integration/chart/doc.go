// Package chart tests the Helm chart, deploy/chart: it makes what the kustomizations of deploy/ make (no pool needed), and a site can
// install, upgrade and remove it with rights in one namespace. The pool of the last:
//
//	integration/.state/bin/pool up --controllers --slots 1
//	go -C integration/chart test -tags pool -count=1 -v .
//
// It is a module of its own because Helm's library needs a later Kubernetes than the other tests have.
package chart
