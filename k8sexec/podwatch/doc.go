// Package podwatch follows one pod at the API server: patient calls, a watch that goes on
// after interruptions, and what its states say about a container whose image was patched.
package podwatch
