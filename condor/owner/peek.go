package owner

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Which of a job's standard files a [Wanted] is.
const (
	Stdout = iota
	Stderr
	Other // one of the job's output files, or a standard file by its name
)

// Wanted is one file that condor_tail wants to see.
type Wanted struct {
	Name string // as the job ad has it
	What int    // Stdout, Stderr or Other
	// Offset is the first byte wanted; a negative one means the end of the
	// file, as much of it as may be sent.
	Offset int64
}

// Peek is a request of condor_tail, STARTER_PEEK (starter.cpp:Starter::peek).
type Peek struct {
	Stdout, Stderr bool
	// Offsets of those two.
	stdoutFrom, stderrFrom int64
	files                  []Wanted
	// Max is how many bytes may be sent in all; negative: no limit.
	Max int64
}

// maxFiles bounds the files of one request. A command line has room for more,
// but nobody needs them.
const maxFiles = 1000

// ReadPeek reads the payload of STARTER_PEEK.
func ReadPeek(s *cedar.Stream) (Peek, error) {
	ad, err := readAd(s, "a request to look at files")
	if err != nil {
		return Peek{}, err
	}
	return peekOf(ad)
}

func peekOf(ad *classads.Ad) (Peek, error) {
	p := Peek{
		Stdout: ad.BoolOr("Out", false), stdoutFrom: ad.IntOr("OutOffset", -1),
		Stderr: ad.BoolOr("Err", false), stderrFrom: ad.IntOr("ErrOffset", -1),
		Max: ad.IntOr("MaxTransferBytes", -1),
	}
	names, err := ad.GetList("TransferFiles")
	if err != nil {
		names = nil // none are wanted
	}
	if len(names) > maxFiles {
		return p, fmt.Errorf("a request to look at %d files; at most %d are allowed", len(names), maxFiles)
	}
	offsets, _ := ad.GetList("TransferOffsets")
	for i, v := range names {
		name, ok := v.Str()
		if !ok {
			return p, &Refusal{Reason: "Could not evaluate transfer list."}
		}
		w := Wanted{Name: name, What: Other, Offset: -1}
		if i < len(offsets) {
			// Stock gives every offset to the first file.
			if n, ok := offsets[i].Int(); ok {
				w.Offset = n
			}
		}
		p.files = append(p.files, w)
	}
	return p, nil
}

// Files returns the files of the job to send, in the order of the answer. The
// owner may only see files that the job sends back at its end; any other is a
// [*Refusal].
func (p Peek) Files(job *classads.Ad) ([]Wanted, error) {
	var list []Wanted
	out, err := job.GetString("Out")
	hasOut := err == nil
	errs, err := job.GetString("Err")
	hasErr := err == nil
	if p.Stdout && hasOut {
		list = append(list, Wanted{out, Stdout, p.stdoutFrom})
	}
	if p.Stderr && hasErr {
		list = append(list, Wanted{errs, Stderr, p.stderrFrom})
	}
	outputs := strings.FieldsFunc(job.StringOr("TransferOutput", ""), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for _, w := range p.files {
		switch {
		case hasErr && w.Name == errs:
			if !p.Stderr {
				list = append(list, w)
			}
		case hasOut && w.Name == out:
			if !p.Stdout {
				list = append(list, w)
			}
		case slices.Contains(outputs, w.Name):
			list = append(list, w)
		default:
			return nil, &Refusal{Reason: fmt.Sprintf("File %s requested but not authorized to be sent.", w.Name)}
		}
	}
	return list, nil
}

// Part is the part of a file to send: Size bytes from Offset on; a negative
// Size means all.
type Part struct {
	Wanted
	Size int64
}

// Apportion decides what to send of files with these sizes.
func (p Peek) Apportion(files []Wanted, sizes []int64) []Part {
	parts := make([]Part, len(files))
	left := max(p.Max, -1)
	for i, w := range files {
		size := sizes[i]
		if w.Offset > size {
			w.Offset = size // truncated since the last answer
		}
		switch {
		case left < 0:
			w.Offset, size = max(w.Offset, 0), -1
		case w.Offset < 0:
			w.Offset = max(size-left, 0)
			size -= w.Offset
		default:
			size = min(size-w.Offset, left)
		}
		if left >= 0 {
			left -= size
		}
		parts[i] = Part{w, size}
	}
	return parts
}

// Answer sends the parts. open opens a file and returns its size; a file that
// it cannot open arrives as an empty one. With -f a tool continues where the
// last answer ended, so Answer sends the true offsets; stock sometimes sends 0
// for the standard output, and the tool then shows lines twice.
func Answer(s *cedar.Stream, parts []Part, open func(name string) (io.ReadSeekCloser, int64, error)) error {
	ad := classads.NewAd()
	ad.SetBool("Result", true)
	var names, offsets []*classads.Expr
	for _, p := range parts {
		name := classads.IntExpr(int64(p.What))
		if p.What == Other {
			name = classads.StringExpr(p.Name)
		}
		names = append(names, name)
		offsets = append(offsets, classads.IntExpr(p.Offset))
	}
	ad.SetList("TransferFiles", names...)
	ad.SetList("TransferOffsets", offsets...)
	if err := sendAd(s, ad); err != nil {
		return err
	}
	sent := int64(0)
	for _, p := range parts {
		ok, err := answerOne(s, p, open)
		if err != nil {
			return fmt.Errorf("send %s to the job's owner: %w", p.Name, err)
		}
		if ok {
			sent++
		}
	}
	s.PutInt(sent)
	return s.EndMessage()
}

// answerOne sends one part. Tools expect no end of message between two files;
// PutFile leaves it to the caller.
func answerOne(s *cedar.Stream, p Part, open func(string) (io.ReadSeekCloser, int64, error)) (bool, error) {
	f, size, err := open(p.Name)
	if err != nil {
		return false, s.PutEmptyFile()
	}
	defer f.Close()
	rest := max(size-p.Offset, 0)
	if p.Size >= 0 {
		rest = min(rest, p.Size)
	}
	if _, err := f.Seek(p.Offset, io.SeekStart); err != nil {
		return false, s.PutEmptyFile()
	}
	return true, s.PutFile(f, rest)
}
