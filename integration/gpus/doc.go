// Package gpus tests that jobs get the GPUs of their slots, with the real startd and kubelet, and
// a device plugin whose devices are none (integration/deviceplugin).
//
//	pool up --slots 3 --gpus 2 [--partitionable] [--stock]
package gpus
