package sandbox

import (
	"fmt"
	"syscall"
)

// URLs do not travel over CEDAR: whoever is at the execution point's end
// fetches or stores them with a plugin. This file is where plugins belong;
// there are none yet, so that every URL ends as it does with HTCondor for a
// method without a plugin. None is advertised either, so that no job with
// URLs is matched.

// urlItem is a URL to fetch.
type urlItem struct {
	url    string
	target string // name in the sandbox
}

// url takes a URL. It is fetched when all other items have arrived: some of
// them may be what the plugin needs.
func (d *download) url(target string) error {
	url, err := d.s.GetString()
	if err == nil {
		err = d.s.EndOfMessage()
	}
	if err != nil || target == "" {
		return err
	}
	const most = 16 << 20 // bytes of URLs and names that are remembered
	if d.urlBytes += len(url) + len(target); d.urlBytes > most {
		d.fail(&TransferError{Code: CodeDownload, Subcode: int(syscall.E2BIG),
			Text: fmt.Sprintf("STARTER at %s - |Error: receiving file %s: the URLs of the job's input are too long altogether", d.local(), d.shown(target))})
		return nil
	}
	d.urls = append(d.urls, urlItem{url: url, target: target})
	return nil
}

// fetch fetches the URLs of the transfer.
func (d *download) fetch() {
	for _, u := range d.urls {
		d.fail(&TransferError{Code: CodeDownload, Subcode: SubcodeNoPlugin,
			Text: fmt.Sprintf("STARTER at %s - |Error: receiving file %s: %s", d.local(), d.shown(u.target), noPlugin(u.url))})
		return
	}
}

// noPlugin is what HTCondor says of a URL that no plugin takes
// (InvokeFileTransferPlugin), and the URL itself.
func noPlugin(url string) string {
	return fmt.Sprintf("FILETRANSFER:1:FILETRANSFER: plugin for type %s not found! ( URL file = %s )|", urlMethod(url), safeURL(url))
}
