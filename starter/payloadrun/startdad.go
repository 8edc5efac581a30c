package payloadrun

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"podstarter/classads"
)

const (
	// startdAdFile is what the startd writes beside the sandbox whenever it
	// refreshes the slot's ad (HTCondor src/condor_startd.V6/Resource.cpp:
	// refresh_sandbox_ad).
	startdAdFile = ".update.ad"
	// MaxStartdAd bounds it; a slot ad is some 20 kB.
	MaxStartdAd = 4 << 20
)

// StartdMeasures is what the startd measured of this slot, above all what its
// monitors say of GPUs; nil before the startd has written it.
func (j *Job) StartdMeasures() *classads.Ad {
	data, err := j.readStartdAd()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			j.Log.Warn("Cannot read what the startd measured", "error", err)
		}
		return nil
	}
	ad, err := classads.ParseOld(string(data))
	if err != nil {
		j.Log.Warn("What the startd measured is not understood", "error", err)
		return nil
	}
	return ad
}

// readStartdAd reads the file with the rights of its directory's owner:
// HTCondor with nested directories or a scratch directory outside EXECUTE,
// otherwise the payload.
func (j *Job) readStartdAd() ([]byte, error) {
	if j.Sandbox == nil {
		return nil, fs.ErrNotExist
	}
	if !j.Settings.Condor.NestedScratch && j.Settings.ScratchDir == "" {
		return j.Sandbox.ReadFile(startdAdFile, MaxStartdAd)
	}
	f, err := os.Open(filepath.Join(j.Sandbox.HTCondor(), startdAdFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxStartdAd))
}
