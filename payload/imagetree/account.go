package imagetree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Account is the user of the programs that are to run, as /etc/passwd has it (passwd(5)). Apptainer
// adds it to the image's users, so that programs that ask for their user's name find one.
type Account struct {
	Name     string
	UID, GID int
	Home     string
}

func (a Account) check() error {
	if a.Name == "" || a.UID <= 0 || a.GID <= 0 {
		return errors.New("a user has a name, and is not root")
	}
	for _, text := range []string{a.Name, a.Home} {
		if text != printable(text) || strings.Contains(text, ":") {
			return fmt.Errorf("%.80q cannot be in a list of users", text)
		}
	}
	return nil
}

// add adds the account to the image's lists of users and groups. One that knows the user already stays
// as it is, and so does what is no plain list: there, names stay unknown, as in an image without lists.
//
// The account of an earlier job is the last line, as this wrote it: with again, it goes.
func (a Account) add(root int, again bool) error {
	user := fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", a.Name, a.UID, a.GID, a.Home)
	group := fmt.Sprintf("%s:x:%d:\n", a.Name, a.GID)
	own := ""
	if again {
		own = fmt.Sprintf("%s:x:%d:%d::", a.Name, a.UID, a.GID)
	}
	return errors.Join(addLine(root, "etc/passwd", user, a.UID, own), addLine(root, "etc/group", group, a.GID, ""))
}

// maxList bounds a list of users that is read, in bytes.
const maxList = 1 << 20

// addLine adds a line to a list that does not know the ID. A last line that begins with own, if that is not
// empty, gives way.
func addLine(root int, name, line string, id int, own string) error {
	fd, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_RDWR | unix.O_APPEND | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: beneath.Resolve,
	})
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EACCES):
		return nil
	case err != nil:
		return fmt.Errorf("open %s: %w", name, err)
	}
	list := os.NewFile(uintptr(fd), name)
	defer list.Close()
	info, err := list.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxList {
		return err
	}
	known, err := io.ReadAll(io.LimitReader(list, maxList))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if at := bytes.LastIndexByte(bytes.TrimSuffix(known, []byte("\n")), '\n') + 1; own != "" && bytes.HasPrefix(known[at:], []byte(own)) {
		if err := list.Truncate(int64(at)); err != nil {
			return fmt.Errorf("remove the last line of %s: %w", name, err)
		}
		known = known[:at]
	}
	for entry := range bytes.Lines(known) {
		if fields := strings.Split(string(entry), ":"); len(fields) > 2 && strings.TrimSpace(fields[2]) == strconv.Itoa(id) {
			return nil
		}
	}
	if len(known) > 0 && known[len(known)-1] != '\n' {
		line = "\n" + line
	}
	if _, err := list.WriteString(line); err != nil {
		return fmt.Errorf("add a line to %s: %w", name, err)
	}
	return nil
}
