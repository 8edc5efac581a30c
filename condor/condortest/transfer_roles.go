package condortest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// directorySize is what a directory counts for among bytes sent.
const directorySize = 4

// send is FILETRANS_UPLOAD: the shadow sends the job's input.
func (x *session) send() error {
	items, err := x.input()
	if err != nil {
		errno := errnoOf(err)
		x.failure = Failure(13, int(errno), fmt.Sprintf("SHADOW at 127.0.0.1 failed to send file(s) to %s: |Error: 1 total failures: first failure: reading from file %v: (errno %d) %s",
			x.s.Peer(), pathOf(err), int(errno), sentence(errno.Error())), false)
	}
	x.mu.Lock()
	x.failed, x.asked = err != nil, false
	x.mu.Unlock()
	size := int64(0)
	for _, it := range items {
		size += int64(len(it.Data))
	}
	info := classads.NewAd()
	info.SetInt("SandboxSize", size)
	x.s.PutInt(0) // not the last transfer
	if err := x.putAd(info); err != nil {
		return err
	}
	for _, it := range items {
		if err := x.sendItem(it); err != nil {
			return err
		}
	}
	if err := result(x.s, itemEnd); err != nil {
		return err
	}
	if err := x.report(InputAck); err != nil {
		return err
	}
	ad, err := x.getAd()
	if err != nil {
		return fmt.Errorf("the starter's report of the input: %w", err)
	}
	x.mu.Lock()
	x.failed = x.failed || ad.IntOr("Result", 0) != 0
	x.mu.Unlock()
	x.add(Heard{Call: InputAck, Ad: adOf(ad)})
	return nil
}

func pathOf(err error) string {
	_, rest, _ := strings.Cut(err.Error(), " ")
	path, _, _ := strings.Cut(rest, ":")
	return path
}

// sentence begins with a capital letter, as strerror(3) has it.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (x *session) sendItem(it Item) error {
	done, r, err := x.eventWith(Heard{Call: InputItem, Texts: []string{it.Name}, Ints: []int64{it.Command}})
	if err != nil || done {
		return err
	}
	if err := result(x.s, it.Command); err != nil {
		return err
	}
	x.s.PutString(it.Name)
	if err := x.s.EndMessage(); err != nil {
		return err
	}
	if err := x.ask(); err != nil {
		return err
	}
	if err := x.grant(); err != nil {
		return err
	}
	x.files++
	var from io.Reader = strings.NewReader(it.Data)
	switch {
	case it.Send != nil:
	case it.Command == ItemProxy:
		return delegate(x.s, 2)
	case it.Command == ItemDirectory:
		x.bytes += directorySize
	case it.isFile():
		x.bytes += int64(len(it.Data))
		if r.after > 0 {
			from = io.MultiReader(io.LimitReader(from, r.after), x.hangingUp())
		}
	}
	if err := it.put(x.s, from); err != nil || it.Command != ItemOther || it.Send != nil {
		return err
	}
	return x.takeAnswer(it)
}

// isFile says whether an item has permissions and contents. Commands that nobody knows are
// files too.
func (it Item) isFile() bool {
	switch it.Command {
	case ItemProxy, ItemURL, ItemDirectory, ItemOther:
		return false
	}
	return true
}

// Put puts what follows the name of an item; a proxy cannot be put.
func (it Item) Put(s *cedar.Stream) error { return it.put(s, strings.NewReader(it.Data)) }

func (it Item) put(s *cedar.Stream, from io.Reader) error {
	switch {
	case it.Send != nil:
		return it.Send(s)
	case it.Command == ItemURL:
		s.PutString(it.URL)
	case it.Command == ItemOther:
		s.PutAd(it.Ad)
	default:
		s.PutInt(it.Mode)
	}
	if err := s.EndMessage(); err != nil || !it.isFile() {
		return err
	}
	if err := s.PutFile(from, int64(len(it.Data))); err != nil {
		return err
	}
	return s.EndMessage()
}

// hangingUp ends the connection when it is read.
func (x *session) hangingUp() io.Reader {
	return readerFunc(func([]byte) (int, error) {
		x.fails()
		_ = x.s.Flush()
		x.s.Close()
		return 0, errHungUp
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// takeAnswer takes the answer to an item that is about others, which two kinds have.
func (x *session) takeAnswer(it Item) error {
	if sub := it.Ad.IntOr("SubCommand", 0); sub != 8 && sub != 9 {
		return nil
	}
	answer, err := x.getAd()
	x.add(Heard{Call: InputAnswer, Texts: []string{it.Name}, Ad: adOf(answer)})
	return err
}

// receive is FILETRANS_DOWNLOAD: the starter brings files.
func (x *session) receive() error {
	final, err := x.s.GetInt()
	if err != nil {
		return err
	}
	info, err := x.getAd()
	if err != nil {
		return err
	}
	if done, err := x.event(Heard{Call: OutputInfo, Ints: []int64{final}, Ad: adOf(info)}); err != nil || done {
		return err
	}
	for {
		command, err := x.getInt()
		if err != nil {
			return err
		}
		if command == itemEnd {
			break
		}
		if err := x.receiveItem(command); err != nil {
			return err
		}
	}
	ad, err := x.getAd()
	if err != nil {
		return fmt.Errorf("the starter's report of the output: %w", err)
	}
	x.add(Heard{Call: OutputAck, Ad: adOf(ad)})
	return x.report(OutputAck)
}

func (x *session) receiveItem(command int64) error {
	name, err := x.getText()
	if err != nil {
		return err
	}
	if err := x.grant(); err != nil {
		return err
	}
	if err := x.ask(); err != nil {
		return err
	}
	h := Heard{Call: OutputItem, Texts: []string{name}, Ints: []int64{command}}
	r := x.at(OutputItem)
	if err := x.receiveBody(&h, r); err != nil {
		return fmt.Errorf("item %d %q: %w", command, name, err)
	}
	if !x.options.Discard {
		x.add(h)
	}
	x.files++
	x.bytes += int64(len(h.Body))
	if command == ItemDirectory && !version.Of(x.version).AtLeast(24, 0, 0) {
		x.bytes += directorySize // newer ones count it no more
	}
	x.place(name)
	x.begin(r, h)
	switch {
	case r.unread || r.hangUp:
		x.s.Close()
		return errHungUp
	case r.ad != nil && h.Ad["SubCommand"] == "9": // the answer to a request for signatures
		if err := x.putAd(r.ad); err != nil {
			return err
		}
		return x.s.Flush()
	}
	return nil
}

// place looks at the place of an output file, if TransferOutputRemaps gives one: what is not
// below the job's Iwd does not exist here.
func (x *session) place(name string) {
	for item := range strings.SplitSeq(x.Job().StringOr("TransferOutputRemaps", ""), ";") {
		from, to, _ := strings.Cut(item, "=")
		to = strings.TrimSpace(to)
		if _, err := x.path(to); strings.TrimSpace(from) == name && err != nil && !strings.Contains(to, "://") {
			x.cannotWrite(to)
		}
	}
}

// cannotWrite makes the report that of a shadow without a directory for a file.
func (x *session) cannotWrite(name string) {
	x.failure = Failure(12, int(syscall.ENOENT), fmt.Sprintf("SHADOW at 127.0.0.1 - |Error: writing to file %s: (errno 2) No such file or directory", name), false)
}

// receiveBody takes what follows the name.
func (x *session) receiveBody(h *Heard, r *reaction) (err error) {
	switch h.Ints[0] {
	case ItemURL:
		h.Body, err = x.getText()
		return err
	case ItemOther:
		ad, err := x.getAd()
		h.Ad = adOf(ad)
		return err
	}
	mode, err := x.getInt()
	if h.Ints = append(h.Ints, mode); err != nil || h.Ints[0] == ItemDirectory {
		return err
	}
	var contents bytes.Buffer
	var to io.Writer = &contents
	if x.options.Discard {
		to = io.Discard
	}
	if r.after > 0 {
		to = &cutWriter{x: x, to: to, left: r.after}
	}
	_, err = x.s.GetFile(to, -1)
	h.Body = contents.String()
	return end(x.s, err)
}

// cutWriter ends the connection when so many bytes have arrived.
type cutWriter struct {
	x    *session
	to   io.Writer
	left int64
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left <= 0 {
		w.x.s.Close()
		return 0, errHungUp
	}
	return w.to.Write(p)
}

// errNoKey is about a delegation that was not asked for as it should be.
var errNoKey = errors.New("what was sent is no request for a certificate")

// delegate plays the side of a delegation that has the proxy; chain is how many
// certificates it gives, 0 that it cannot.
func delegate(s *cedar.Stream, chain int) error {
	n, err := s.GetInt()
	if err != nil {
		return err
	}
	const most = 1 << 20
	if n <= 0 || n > most {
		return errNoKey
	}
	der, err := s.GetBytes(int(n))
	if err := end(s, err); err != nil {
		return err
	}
	out, err := certificates(der, chain)
	if err != nil {
		return err
	}
	s.PutInt(int64(len(out)))
	s.PutBytes(out)
	return s.EndMessage()
}
