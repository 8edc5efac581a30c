// Package podapi asks the API server about the pilot's own pod, and patches it.
package podapi
