package sandbox

import (
	"podstarter/sandbox/beneath"
)

// Open opens a regular file of the scratch directory for reading, as the payload, and
// says how long it is. The name is relative to the directory or absolute; links are
// followed as long as they stay beneath it ([beneath.ErrOutside]). It opens only
// regular files ([beneath.ErrNotRegular]). The caller closes the file.
func (s *Sandbox) Open(name string) (*beneath.File, int64, error) {
	var f *beneath.File
	var size int64
	err := s.payload.Do(func() error {
		file, st, err := s.inside.OpenRead(name)
		f, size = file, st.Size
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}
