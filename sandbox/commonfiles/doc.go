// Package commonfiles keeps common input files, which HTCondor fetches once for all jobs of
// a cluster, and gives them to these jobs.
//
// A catalog is a tree of files that the starter of a data slot has fetched. It lies in a
// directory of that slot's sandbox that only this process's user may enter, and all in it
// belongs to that user and cannot be written. A job gets each file as a copy that shares
// its blocks (FICLONE, ioctl_ficlonerange(2)), else as a hard link, else as a copy. A job can
// remove its link and put something else in its place, but the file itself is no job's to
// change. The stock starter gives the linked file to the job's user, who can
// (src/condor_starter.V6.1/staging_directory.cpp).
//
// Without root all jobs have this process's user, who may change everything here. Then there are
// no hard links, and a digest of the catalog's contents, which comes to a job's starter by way of
// the access point, tells whether the job got what was kept.
//
// A catalog is found by a key that depends on its owner and access point. What an access
// point says of places in this file system is not used.
package commonfiles
