// Package beneath touches files below one directory on behalf of a user who
// may have changed anything in it: as that user's filesystem identity, and
// without ever leaving the directory.
//
// There are two defences, and each is enough by itself:
//
//   - Identity. Work on behalf of the user is done by a thread whose filesystem uid,
//     gid and supplementary groups are the user's ([Owner.Do]), so the kernel refuses
//     what it would refuse the user. The thread ends with the work.
//   - Confinement. A [Root] resolves every path with openat2(2) and
//     RESOLVE_BENEATH, or, where the kernel has no openat2, component by
//     component with O_NOFOLLOW. Symbolic links are followed as long as they
//     stay beneath the root, absolute ones included when they name the root's
//     own path; a link that leads out ends in [ErrOutside].
//
// Files are opened with O_NONBLOCK and are used only if fstat(2) says that they are
// regular, so a FIFO, a socket or a device that the user left behind neither blocks the
// caller nor has an effect.
//
// Removing a tree and measuring it ([RemoveAll], [Measure]) need no identity: they
// follow no links, open only directories, and cross no mount.
package beneath
