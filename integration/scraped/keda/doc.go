// Package keda has KEDA's own scaler read the provisioner's metrics. KEDA's scalers are one package with the libraries of all clouds, which takes two
// processors some ten minutes to build:
//
//	go -C integration/scraped test -count=1 ./keda
package keda
