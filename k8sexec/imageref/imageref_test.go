package imageref

import (
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
)

func TestParseImage(t *testing.T) {
	const d = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	tests := []struct {
		text, want, wantErr string
	}{
		{text: "busybox", want: "docker.io/library/busybox:latest"},
		{text: "docker://busybox:1.36", want: "docker.io/library/busybox:1.36"},
		{text: " user/tool:2\n", want: "docker.io/user/tool:2"},
		{text: "registry.example.com:5000/a/b/c:x_1.y-2", want: "registry.example.com:5000/a/b/c:x_1.y-2"},
		{text: "localhost/tool", want: "localhost/tool:latest"},
		{text: "registry.example.com/tool@" + d, want: "registry.example.com/tool@" + d},
		{text: "registry.example.com/tool:3@" + d, want: "registry.example.com/tool:3@" + d},
		{text: "", wantErr: "is empty"},
		{text: "docker://", wantErr: "is empty"},
		{text: "Busybox", wantErr: "must be lowercase"},
		{text: "busybox:", wantErr: "invalid reference format"},
		{text: "busybox:a b", wantErr: "invalid reference format"},
		{text: "busybox@sha256:12", wantErr: "invalid reference format"},
		{text: strings.Repeat("a", 64), wantErr: "cannot specify 64-byte hexadecimal strings"},
		{text: "registry.example.com/" + strings.Repeat("a", 300), wantErr: "must not be more than 255 characters"},
		{text: strings.Repeat("a", 5000), wantErr: "is 5000 bytes long"},
		{text: "oras://registry.example.com/tool", wantErr: "begins with oras://"},
		{text: "docker://http://registry.example.com/tool", wantErr: "two schemes"},
		{text: "/cvmfs/singularity.example.com/tool", wantErr: "is a file or a directory"},
		{text: "./tool", wantErr: "is a file or a directory"},
		{text: "tool.sif", wantErr: "is a file or a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.text[:min(len(tt.text), 40)], func(t *testing.T) {
			img, err := Parse(tt.text)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("got %v, %v; want error %q", img, err, tt.wantErr)
				}
				return
			}
			if err != nil || img.String() != tt.want {
				t.Errorf("got %v, %v; want %s", img, err, tt.want)
			}
		})
	}
}

func TestOnceTag(t *testing.T) {
	tests := []struct{ activation, nonce, want string }{
		{"slot1_1.42.0", "0123456789abcdef", "run-slot1_1.42.0-0123456789ab"},
		{"a#b@c/d", "01", "run-a-b-c-d-01"},
		{strings.Repeat("x", 500), "0123456789abcdef", "run-" + strings.Repeat("x", 111) + "-0123456789ab"},
	}
	for _, tt := range tests {
		got := OnceTag(tt.activation, tt.nonce)
		if got != tt.want {
			t.Errorf("tag %q, want %q", got, tt.want)
		}
		if !reference.TagRegexp.MatchString(got) || len(got) > 128 {
			t.Errorf("%q is no tag", got)
		}
	}
}

func TestDigestOf(t *testing.T) {
	img, err := Parse("busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, imageID, want string
	}{
		{"containerd", "docker.io/library/busybox@" + someDigest, someDigest},
		{"dockershim", "docker-pullable://busybox@" + someDigest, someDigest},
		{"another repository of the same image", "mirror.example.com/busybox@" + someDigest, ""},
		{"ID of the configuration", someDigest, ""},
		{"none yet", "", ""},
		{"rubbish", strings.Repeat("@", 9999), ""},
	}
	for _, tt := range tests {
		if got, _ := img.DigestIn(tt.imageID); got.String() != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestNamesImage(t *testing.T) {
	const once = "docker.io/library/busybox:run-1-2@" + someDigest
	tests := []struct {
		message, spec string
		want          bool
	}{
		{`Back-off pulling image "busybox:1"`, "busybox:1", true},
		{`Back-off pulling image "busybox:1.36"`, "busybox:1", false},
		{`Back-off pulling image "docker.io/library/busybox:1"`, "busybox:1", true},
		{`failed to resolve docker.io/library/busybox@` + someDigest + `: not found`, once, true},
		{`failed to resolve docker.io/library/busybox:1: not found`, once, false},
		{`no such image busybox:1. Sorry.`, "busybox:1", true},
		{`busybox:1`, "", false},
		{`anything`, "Not/Parsable", false},
	}
	for _, tt := range tests {
		if got := Named(tt.message, tt.spec); got != tt.want {
			t.Errorf("%q names %q: %v", tt.message, tt.spec, got)
		}
	}
}

func FuzzParseImage(f *testing.F) {
	for _, s := range []string{"busybox", "docker://a/b:c", "localhost:5000/a@" + someDigest, "a:b@" + someDigest, "é", "/", "[::1]:5000/x"} {
		f.Add(s, "activation", "docker.io/library/busybox@"+someDigest)
	}
	f.Fuzz(func(t *testing.T, text, activation, imageID string) {
		img, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(img.String())
		if diff := cmp.Diff(img, again, cmp.AllowUnexported(Image{})); err != nil || diff != "" {
			t.Errorf("%q is %v, which is not itself: %v\n%s", text, img, err, diff)
		}
		if d, ok := img.DigestIn(imageID); ok {
			once, err := Parse(img.Once(OnceTag(activation, strings.Repeat("0f", 16)), d))
			if err != nil || once.Repository != img.Repository || once.Digest != d {
				t.Errorf("throw-away form %v of %v: %v", once, img, err)
			}
		}
		if !Named(`x "`+img.String()+`" y`, img.String()) {
			t.Errorf("%v does not name itself", img)
		}
	})
}

const someDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
