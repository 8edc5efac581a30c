// Package imagefile gives a payload container the files of an image that the kubelet cannot pull: a SIF
// or squashfs that came with the job, one or a directory that the site has in the pilot
// container, or the layers of one that only the job's user may pull.
//
// Nothing is mounted, so that no privilege is needed. Two programs copy: condor_pod_unpacker reads
// the image in the pilot container, as the job's user and without rights, and writes a tar stream
// to a pipe; [podstarter/payload/imagetree] writes the files below / of the payload container,
// which until then has an image that is all but empty.
package imagefile
