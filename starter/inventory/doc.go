// Package inventory writes the manifest that a job can ask for (manifest, manifest_dir):
// a directory in its sandbox with the names of the files that the job found (in) and
// left (out), and with its environment. It returns with the job's output.
package inventory
