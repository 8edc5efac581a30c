package owner

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podstarter/classads"
	"podstarter/internal/cedar"
	"podstarter/internal/cedar/cedartest"
)

func parsed(t testing.TB, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

const jobAd = "Out = \"_condor_stdout\"\nErr = \"_condor_stderr\"\nTransferOutput = \"a.txt, dir/b\"\n"

func TestPeekFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		want    []Wanted
		refused string
	}{
		"stdout":       {"Out = true\nOutOffset = 7\n", []Wanted{{"_condor_stdout", Stdout, 7}}, ""},
		"both":         {"Out = true\nErr = true\n", []Wanted{{"_condor_stdout", Stdout, -1}, {"_condor_stderr", Stderr, -1}}, ""},
		"output files": {"TransferFiles = {\"dir/b\", \"a.txt\"}\nTransferOffsets = {5, -1}\n", []Wanted{{"dir/b", Other, 5}, {"a.txt", Other, -1}}, ""},
		"by name":      {"TransferFiles = {\"_condor_stdout\"}\n", []Wanted{{"_condor_stdout", Other, -1}}, ""},
		"twice":        {"Out = true\nTransferFiles = {\"_condor_stdout\"}\n", []Wanted{{"_condor_stdout", Stdout, -1}}, ""},
		"forbidden":    {"TransferFiles = {\"a.txt\", \"../secret\"}\n", nil, "File ../secret requested but not authorized to be sent."},
		"part of name": {"TransferFiles = {\"a\"}\n", nil, "File a requested but not authorized to be sent."},
		"odd":          {"TransferFiles = {1, 2}\n", nil, "Could not evaluate transfer list."},
		"no list":      {"TransferFiles = 3\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := peekOf(parsed(t, tt.request))
			var got []Wanted
			if err == nil {
				got, err = p.Files(parsed(t, jobAd))
			}
			refusal := (*Refusal)(nil)
			if errors.As(err, &refusal) != (tt.refused != "") || refusal != nil && refusal.Reason != tt.refused {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApportion(t *testing.T) {
	for name, tt := range map[string]struct {
		max     int64
		offsets []int64
		sizes   []int64
		want    [][2]int64 // offset and size
	}{
		"the end":         {1024, []int64{-1}, []int64{5000}, [][2]int64{{3976, 1024}}},
		"a short one":     {1024, []int64{-1}, []int64{10}, [][2]int64{{0, 10}}},
		"from an offset":  {1024, []int64{10}, []int64{30}, [][2]int64{{10, 20}}},
		"much behind it":  {16, []int64{10}, []int64{300}, [][2]int64{{10, 16}}},
		"cut short":       {1024, []int64{100}, []int64{30}, [][2]int64{{30, 0}}},
		"no bound":        {-1, []int64{-1, 7}, []int64{5000, 10}, [][2]int64{{0, -1}, {7, -1}}},
		"a shared bound":  {10, []int64{-1, -1, -1}, []int64{6, 20, 3}, [][2]int64{{0, 6}, {16, 4}, {3, 0}}},
		"an odd bound":    {-7, []int64{-5}, []int64{3}, [][2]int64{{0, -1}}},
		"nothing at all":  {0, []int64{-1}, []int64{3}, [][2]int64{{3, 0}}},
		"largest numbers": {1 << 62, []int64{1<<63 - 1}, []int64{1<<63 - 1}, [][2]int64{{1<<63 - 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			var files []Wanted
			for _, o := range tt.offsets {
				files = append(files, Wanted{Offset: o})
			}
			var got [][2]int64
			for _, p := range (Peek{Max: tt.max}).Apportion(files, tt.sizes) {
				got = append(got, [2]int64{p.Offset, p.Size})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// TestAnswer reads an answer as a tool does: the files follow each other without
// an end of message in between.
func TestAnswer(t *testing.T) {
	contents := map[string]string{"one": "0123456789", "empty": "", "two": "abcdef"}
	parts := []Part{
		{Wanted{"one", Stdout, 4}, 3}, {Wanted{"empty", Stderr, 0}, 0}, {Wanted{"gone", Other, 0}, 5}, {Wanted{"two", Other, 2}, -1},
	}
	raw := cedartest.Written(t, func(s *cedar.Stream) {
		err := Answer(s, parts, func(name string) (io.ReadSeekCloser, int64, error) {
			text, ok := contents[name]
			if !ok {
				return nil, 0, errors.New("it is gone")
			}
			return file{bytes.NewReader([]byte(text))}, int64(len(text)), nil
		})
		if err != nil {
			t.Error(err)
		}
		s.PutInt(1) // for the end of message that follows
	})
	s := cedartest.Said(t, raw)
	ad, err := s.GetAd()
	if err == nil {
		err = s.EndOfMessage()
	}
	if err != nil {
		t.Fatal(err)
	}
	if text := ad.FormatNew(); !strings.Contains(text, "TransferOffsets = { 4,0,0,2 }") {
		t.Error(text)
	}
	var got []string
	for range parts {
		var b bytes.Buffer
		if _, err := s.GetFile(&b, -1); err != nil {
			t.Fatal(err)
		}
		got = append(got, b.String())
	}
	if diff := cmp.Diff([]string{"456", "", "", "cdef"}, got); diff != "" {
		t.Error(diff)
	}
	if n, err := s.GetInt(); err != nil || n != 3 {
		t.Errorf("%d files, %v", n, err)
	}
}

func TestLogin(t *testing.T) {
	for name, tt := range map[string]struct {
		ad   string
		want Login
		bad  bool
	}{
		"nothing": {"X = 1\n", Login{}, false},
		"all": {"Shell = \"/bin/zsh, /bin/bash,\"\nName = \"slot1@host\"\nSSHKeyGenArgs = \"-t rsa -C 'a b'\"\n",
			Login{[]string{"/bin/zsh", "/bin/bash"}, "slot1@host", []string{"-t", "rsa", "-C", "a b"}}, false},
		"many shells": {"Shell = \"" + strings.Repeat("/bin/x,", 100) + "\"\n", Login{Shells: slicesOf("/bin/x", maxShells)}, false},
		"no words":    {"Name = \"a\x1b[2J\"\n", Login{}, false},
		"quotes":      {"SSHKeyGenArgs = \"'\"\n", Login{}, true},
	} {
		got, err := loginOf(parsed(t, tt.ad))
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || (err != nil) != tt.bad {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func slicesOf(s string, n int) (list []string) {
	for range n {
		list = append(list, s)
	}
	return list
}

// TestLines64: tools decode only lines of 64 characters, each with a line feed.
func TestLines64(t *testing.T) {
	data := bytes.Repeat([]byte("key"), 100)
	text := lines64(data)
	for line := range strings.Lines(text) {
		if len(line) > 65 || !strings.HasSuffix(line, "\n") {
			t.Errorf("%q", line)
		}
	}
	if got, err := base64.StdEncoding.DecodeString(text); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzPeek has tools ask for anything: only outputs of the job are granted.
func FuzzPeek(f *testing.F) {
	f.Add("Out = true\nOutOffset = -1\nMaxTransferBytes = 1024\n", int64(100))
	f.Add("TransferFiles = {\"a.txt\"}\nTransferOffsets = {9223372036854775807}\nMaxTransferBytes = -1\n", int64(0))
	f.Fuzz(func(t *testing.T, text string, size int64) {
		ad, err := classads.ParseOld(text)
		if err != nil || size < 0 {
			return
		}
		p, err := peekOf(ad)
		if err != nil {
			return
		}
		files, err := p.Files(parsed(t, jobAd))
		if err != nil {
			return
		}
		sizes := make([]int64, len(files))
		for i := range sizes {
			sizes[i] = size
		}
		for _, part := range p.Apportion(files, sizes) {
			switch part.Name {
			case "_condor_stdout", "_condor_stderr", "a.txt", "dir/b":
			default:
				t.Errorf("%q is granted", part.Name)
			}
			if part.Offset < 0 || part.Offset > size || p.Max >= 0 && part.Size > p.Max {
				t.Errorf("%+v of a file of %d bytes", part, size)
			}
		}
	})
}

// FuzzLogin has tools ask for anything.
func FuzzLogin(f *testing.F) {
	f.Add("Shell = \"/bin/bash\"\nName = \"x\"\nSSHKeyGenArgs = \"-t rsa\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		ad, err := classads.ParseOld(text)
		if err != nil {
			return
		}
		l, err := loginOf(ad)
		if err == nil && (len(l.Shells) > maxShells || strings.ContainsAny(l.Slot, "\n\x1b\x00")) {
			t.Errorf("%+v", l)
		}
	})
}
