package beneath

import (
	"io"

	"golang.org/x/sys/unix"
)

// mountOf identifies a mount: by the mount id where the kernel gives one (statx(2),
// Linux 5.8), else by the device. The device does not reveal a bind mount of the same
// file system.
type mountOf struct {
	id    uint64
	byID  bool
	major uint32
	minor uint32
}

func mount(fd int) (mountOf, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st)
	if err != nil {
		return mountOf{}, err
	}
	m := mountOf{major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		m.id, m.byID = st.Mnt_id, true
	}
	return m, nil
}

// openDir opens a directory by its own name, never through a link, and only
// if it is on the mount given.
func openDir(at int, name string, on mountOf) (*Dir, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	if on != (mountOf{}) {
		m, err := mount(fd)
		if err == nil && m != on {
			err = errMounted
		}
		if err != nil {
			closeFD(fd)
			return nil, err
		}
	}
	return &Dir{fd: fd, name: name}, nil
}

// trail is the way down from the top of a tree to the directory at hand. Of a deep
// trail only the ends are open: a directory in its middle is closed when the trail goes
// on below it, and found again through ".." on the way back, if it is still the same
// directory.
type trail struct {
	open []*Dir
	gone []place // closed directories between open[0] and open[1]
}

type place struct {
	dev, ino uint64
	offset   int64 // where reading it went on
}

// maxOpen bounds the descriptors that a walk holds.
const maxOpen = 64

func (t *trail) here() *Dir { return t.open[len(t.open)-1] }

func (t *trail) depth() int { return len(t.open) + len(t.gone) }

func (t *trail) push(d *Dir) error {
	if len(t.open) >= maxOpen {
		mid := t.open[1]
		var st unix.Stat_t
		if err := unix.Fstat(mid.fd, &st); err != nil {
			return err
		}
		offset, err := mid.offset()
		if err != nil {
			return err
		}
		mid.Close()
		t.open = append(t.open[:1], t.open[2:]...)
		t.gone = append(t.gone, place{dev: st.Dev, ino: st.Ino, offset: offset})
	}
	t.open = append(t.open, d)
	return nil
}

// pop leaves the current directory. It returns ESTALE if the directory above is not
// where it was: somebody moved directories.
func (t *trail) pop() error {
	d := t.here()
	defer d.Close()
	t.open = t.open[:len(t.open)-1]
	if len(t.open) != 1 || len(t.gone) == 0 {
		return nil
	}
	want := t.gone[len(t.gone)-1]
	up, err := openDir(d.fd, "..", mountOf{})
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(up.fd, &st)
	if err == nil && (st.Dev != want.dev || st.Ino != want.ino) {
		err = unix.ESTALE
	}
	if err == nil {
		_, err = unix.Seek(up.fd, want.offset, io.SeekStart)
	}
	if err != nil {
		up.Close()
		return err
	}
	t.gone = t.gone[:len(t.gone)-1]
	t.open = append(t.open, up)
	return nil
}

func (t *trail) close() {
	for _, d := range t.open {
		d.Close()
	}
}

// offset is where reading the directory goes on. It is the offset of the last name that
// Next returned: the names left in the buffer are read again from there.
func (d *Dir) offset() (int64, error) {
	if len(d.unread) == 0 {
		return unix.Seek(d.fd, 0, io.SeekCurrent)
	}
	return d.taken, nil
}
