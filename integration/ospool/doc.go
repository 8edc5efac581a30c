// Package ospool tests the program of deploy/components/ospool by itself. How pilots with it run the jobs of a federation is in
// integration/controllers.
package ospool
