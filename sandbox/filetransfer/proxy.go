package filetransfer

import (
	"fmt"
)

// receiveProxy receives an X.509 proxy by delegation. After a failure of the delegation
// the peers are out of step.
func (d *download) receiveProxy(target string) error {
	text, err := d.s.ReceiveProxy()
	if err != nil {
		return err
	}
	if target == "" {
		return nil
	}
	f, err := d.Sandbox.Root().CreateNew(target)
	if err == nil {
		_, err = f.Write(text)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err = barred(err); err != nil {
		d.fail(&Error{Code: CodeDownload, Subcode: int(errno(err)), Err: err,
			Text: fmt.Sprintf("STARTER at %s - |Error: writing to file %s: %s", d.local(), d.shown(target), fileText(err))})
		return nil
	}
	d.proxy = target
	return nil
}
