package cedar

import "syscall"

// Numbers that differ between operating systems travel in a portable form of
// HTCondor's own (errno_num.cpp, open_flags.cpp).

// portableErrno lists the numbers that are not those of Linux.
var portableErrno = [...]struct {
	native   syscall.Errno
	portable int64
}{
	{syscall.EDEADLK, 36},
	{syscall.ENAMETOOLONG, 38},
	{syscall.ENOLCK, 39},
	{syscall.ENOSYS, 40},
	{syscall.ENOTEMPTY, 41},
	{syscall.EILSEQ, 42},
	{syscall.ETXTBSY, 43},
}

// EncodeErrno returns the portable number of a native error number. What has
// none is sent as it is.
func EncodeErrno(e syscall.Errno) int64 {
	for _, p := range portableErrno {
		if p.native == e {
			return p.portable
		}
	}
	return int64(e)
}

// DecodeErrno returns the native error number of a portable one. Numbers that
// no error can have become EIO.
func DecodeErrno(n int64) syscall.Errno {
	for _, p := range portableErrno {
		if p.portable == n {
			return p.native
		}
	}
	const maxErrno = 4095 // include/linux/err.h: MAX_ERRNO
	if n <= 0 || n > maxErrno {
		return syscall.EIO
	}
	return syscall.Errno(n)
}

var portableFlags = [...]struct {
	native   int
	portable int64
}{
	{syscall.O_WRONLY, 0x0001},
	{syscall.O_RDWR, 0x0002},
	{syscall.O_CREAT, 0x0100},
	{syscall.O_TRUNC, 0x0200},
	{syscall.O_EXCL, 0x0400},
	{syscall.O_NOCTTY, 0x0800},
	{syscall.O_APPEND, 0x1000},
}

// EncodeOpenFlags returns the portable form of flags of open(2). Flags
// without one are not transported.
func EncodeOpenFlags(flags int) (portable int64) {
	for _, p := range portableFlags {
		if flags&p.native != 0 {
			portable |= p.portable
		}
	}
	return portable
}

// DecodeOpenFlags returns the flags of open(2) of their portable form.
func DecodeOpenFlags(portable int64) (flags int) {
	for _, p := range portableFlags {
		if portable&p.portable != 0 {
			flags |= p.native
		}
	}
	return flags
}

// MissingPermissions takes the place of a file's mode when the sender could
// not find it out (condor_includes/condor_file_info.h and reli_sock.cpp:
// put_file_with_permissions).
const MissingPermissions = 1 << 24

// PutMode puts the permission bits of a file, or MissingPermissions.
func (s *Stream) PutMode(mode uint32) {
	if mode != MissingPermissions {
		mode &= 0o777
	}
	s.PutInt(int64(mode))
}

// GetMode takes the permission bits of a file; MissingPermissions comes as it
// is, 0 means that the sender has none to tell (stream.cpp:code).
func (s *Stream) GetMode() (uint32, error) {
	n, err := s.GetUint()
	if err != nil {
		return 0, err
	}
	if n == MissingPermissions {
		return MissingPermissions, nil
	}
	return uint32(n & 0o777), nil
}

// PutErrno puts a native error number in portable form.
func (s *Stream) PutErrno(e syscall.Errno) { s.PutInt(EncodeErrno(e)) }

// GetErrno takes a portable error number.
func (s *Stream) GetErrno() (syscall.Errno, error) {
	n, err := s.GetInt()
	if err != nil {
		return 0, err
	}
	return DecodeErrno(n), nil
}
