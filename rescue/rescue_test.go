package rescue

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told records the panics that the handler gets.
type told struct {
	mu     sync.Mutex
	values []any
	one    chan struct{} // buffered(8)
}

func (t *told) take(p *Panic) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.values = append(t.values, p.Value)
	if !strings.Contains(p.Stack, "rescue.foolish") {
		t.values = append(t.values, p.Stack)
	}
	t.one <- struct{}{}
}

func foolish() { panic("a bug") }

func foolishError() error { panic("a bug") }

func TestRescue(t *testing.T) {
	var g Group
	tests := map[string]struct {
		do   func(*told) error
		fail bool
		want []any
	}{
		"a goroutine": {do: func(heard *told) error {
			Go(foolish)
			<-heard.one
			return nil
		}, want: []any{"a bug"}},
		"a group":               {do: func(*told) error { g.Go(foolish); g.Wait(); return nil }, want: []any{"a bug"}},
		"a result":              {do: func(*told) error { return Do(foolishError) }, fail: true, want: []any{"a bug"}},
		"an error is its own":   {do: func(*told) error { return Do(func() error { return errors.ErrUnsupported }) }, fail: true},
		"nothing":               {do: func(*told) error { return Do(func() error { return nil }) }},
		"the same is told once": {do: func(*told) error { return Do(func() error { panic(Do(foolishError)) }) }, fail: true, want: []any{"a bug"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			heard := &told{one: make(chan struct{}, 8)}
			defer Handle(heard.take)()
			if err := tt.do(heard); (err != nil) != tt.fail {
				t.Errorf("got %v", err)
			}
			if d := cmp.Diff(tt.want, heard.values); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestNobodyTold: without a handler, a panic ends the process as usual.
func TestNobodyTold(t *testing.T) {
	defer func() {
		if v := recover(); v != "a bug" {
			t.Errorf("got %v", v)
		}
	}()
	_ = Do(foolishError)
}

// bare are the places where the starter's packages start goroutines directly,
// and why they may.
var bare = map[string]string{
	"sshtojob/session.go":                   "in the ssh server, which is a process of its own",
	"sshtojob/server.go":                    "in the ssh server, which is a process of its own",
	"sshtojob/errand.go":                    "in the ssh server, which is a process of its own",
	"payload/procfamily/killer.go":          "on a thread with another user's ID, which must not go on after a panic",
	"internal/cedar/cedartest/cedartest.go": "for tests",
	"condor/condortest/shadow.go":           "for tests",
	"condor/condortest/startd.go":           "for tests",
	"k8sexec/podapi/podapitest/server.go":   "for tests",
	"starter/activation/lastwords.go":       "tells of panics",
	"starter/diebysignal.go":                "panics on purpose: the process is to end",
}

// TestEveryGoroutine: a goroutine that is started in another way ends the
// process when it panics.
func TestEveryGoroutine(t *testing.T) {
	files, found := token.NewFileSet(), map[string]bool{}
	for _, dir := range []string{"starter", "internal", "condor", "classads", "sandbox", "payload", "k8sexec", "localexec", "sshtojob"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../")
			ast.Inspect(file, func(n ast.Node) bool {
				is := false
				switch n := n.(type) {
				case *ast.GoStmt:
					is = true
				case *ast.SelectorExpr:
					x, _ := n.X.(*ast.Ident)
					is = x != nil && x.Name == "sync" && n.Sel.Name == "WaitGroup"
				}
				if is {
					found[name] = true
					if bare[name] == "" {
						t.Errorf("%s: a goroutine whose panic would end the process; start it with podstarter/rescue", files.Position(n.Pos()))
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range bare {
		if !found[name] {
			t.Errorf("%s no longer starts a goroutine directly", name)
		}
	}
}
