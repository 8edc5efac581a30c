package docs

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is a file of Markdown: what it links to, and what links can name in it.
type page struct {
	text    string
	links   []string // as written, without those that leave the repository
	anchors map[string]bool
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	anchor   = regexp.MustCompile(`<a id="([^"]+)">`)
	markup   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	scheme   = regexp.MustCompile(`^[a-z]+:`)
)

func parse(text string) page {
	p := page{text: text, anchors: map[string]bool{}}
	plain := fence.ReplaceAllString(text, "")
	for _, m := range heading.FindAllStringSubmatch(plain, -1) {
		p.anchors[slug(m[1])] = true
	}
	for _, m := range anchor.FindAllStringSubmatch(plain, -1) {
		p.anchors[m[1]] = true
	}
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(plain, "code"), -1) {
		if !scheme.MatchString(m[1]) {
			p.links = append(p.links, m[1])
		}
	}
	return p
}

// slug is the anchor that GitHub gives a heading.
func slug(heading string) string {
	text := markup.ReplaceAllString(heading, "$1")
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-")
}

// repository is the root of the checkout.
const repository = ".."

// files calls visit with each file of the repository whose name ends in one of
// the endings; what is not checked in begins with a dot.
func files(t *testing.T, visit func(name, text string), endings ...string) {
	t.Helper()
	err := filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != repository && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(d.Name(), e) }) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(repository, name)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(relative), string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	files(t, func(name, text string) { all[name] = parse(text) }, ".md")
	if len(all) < 10 {
		t.Fatalf("only %d pages found below %s", len(all), repository)
	}
	return all
}

// follow is where a link of the page leads.
func follow(from, to string) (name, anchor string) {
	to, anchor, _ = strings.Cut(to, "#")
	if to == "" {
		return from, anchor
	}
	return path.Join(path.Dir(from), to), anchor
}

// dead says what is wrong with a link, or nothing.
func dead(all map[string]page, exists func(string) bool, from, to string) string {
	name, anchor := follow(from, to)
	switch p, isPage := all[name]; {
	case !exists(name):
		return "there is no " + name
	case anchor != "" && isPage && !p.anchors[anchor]:
		return name + " has no heading #" + anchor
	}
	return ""
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(repository, filepath.FromSlash(name)))
	return err == nil
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for _, from := range slices.Sorted(maps.Keys(all)) {
		for _, to := range all[from].links {
			if wrong := dead(all, exists, from, to); wrong != "" {
				t.Errorf("%s links to %s: %s", from, to, wrong)
			}
		}
	}
}

// clicks is how many links lead from one page to each that can be reached.
func clicks(all map[string]page, from string) map[string]int {
	distance := map[string]int{from: 0}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, to := range all[queue[0]].links {
			name, _ := follow(queue[0], to)
			if _, known := distance[name]; !known {
				if _, isPage := all[name]; isPage {
					distance[name] = distance[queue[0]] + 1
					queue = append(queue, name)
				}
			}
		}
	}
	return distance
}

// The index has every page, and readers who begin at the front find in two clicks
// what they are most often looking for.
func TestPagesAreFound(t *testing.T) {
	all := pages(t)
	index := map[string]bool{"docs/README.md": true}
	for _, to := range all["docs/README.md"].links {
		name, _ := follow("docs/README.md", to)
		index[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, "docs/") && !index[name] {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
	front := clicks(all, "README.md")
	for _, name := range []string{"docs/README.md", "docs/scientist/holds.md", "docs/operator/troubleshooting.md", "docs/developer/adding.md"} {
		if n, ok := front[name]; !ok || n > 2 {
			t.Errorf("%s is %d clicks from README.md (reached: %t), want at most 2", name, n, ok)
		}
	}
}

// Each page says first for whom it is.
func TestPagesSayForWhomTheyAre(t *testing.T) {
	for name, p := range pages(t) {
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		_, rest, _ := strings.Cut(p.text, "\n\n")
		if !strings.HasPrefix(p.text, "# ") || !strings.HasPrefix(rest, "*For ") {
			t.Errorf("%s: after the title, say in one italic sentence for whom the page is and what it answers (*For ...*)", name)
		}
	}
}

// Those who do not build podstarter are not told how it is tested.
func TestTestCommandsAreForDevelopers(t *testing.T) {
	commands := regexp.MustCompile(`go (-C \S+ )?(test|run) |make test|make bench|integration/run-tests`)
	for name, p := range pages(t) {
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/developer/") {
			continue
		}
		for i, line := range strings.Split(p.text, "\n") {
			if found := commands.FindString(line); found != "" {
				t.Errorf("%s:%d: %q belongs on a page of docs/developer", name, i+1, found)
			}
		}
	}
}

// A package that the page on architecture does not name is one that nobody has
// placed.
func TestArchitectureNamesThePackages(t *testing.T) {
	text := pages(t)["docs/developer/architecture.md"].text
	packages := map[string]bool{}
	files(t, func(name, _ string) {
		dir := path.Dir(name)
		module, _, _ := strings.Cut(dir, "/")
		if !strings.HasSuffix(name, "_test.go") && !slices.Contains([]string{"integration", "release", "testdata"}, module) {
			packages[dir] = true
		}
	}, ".go")
	if len(packages) < 20 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !strings.Contains(text, "`"+dir+"`") {
			t.Errorf("docs/developer/architecture.md does not name the package `%s`: say what it knows, and why it is separate", dir)
		}
	}
}

// Comments, messages and configuration name pages by their path.
func TestNamedPagesExist(t *testing.T) {
	all := pages(t)
	named := regexp.MustCompile(`\bdocs/[a-zA-Z0-9/_-]+\.(?:md|svg)(#[a-z0-9_-]+)?`)
	files(t, func(file, text string) {
		if file == "docs/pages_test.go" {
			return
		}
		for _, at := range named.FindAllStringIndex(text, -1) {
			// A longer path, such as condor/docs/x.md, is somebody else's.
			if at[0] > 0 && text[at[0]-1] == '/' && !strings.HasSuffix(text[:at[0]], "../") {
				continue
			}
			name := text[at[0]:at[1]]
			if wrong := dead(all, exists, ".", name); wrong != "" {
				t.Errorf("%s names %s: %s", file, name, wrong)
			}
		}
	}, ".go", ".md", ".yaml", ".yml", ".conf", ".json", "Makefile", "Dockerfile", "run-tests")
}

func TestWhatIsWrongWithLinks(t *testing.T) {
	all := map[string]page{
		"a.md":     parse("# Title\n\n## Where `x` *is*, and [why](b.md)?\n\n[b](d/b.md#two) `[no](link)` [w](https://example.org)\n```\n# no heading [no](c.md)\n```\n"),
		"d/b.md":   parse("# One\n\n## Two\n\n<a id=\"row-3\"></a> [up](../a.md)"),
		"lost.md":  parse("# Lost"),
		"d/far.md": parse("# Far [b](b.md#row-3)"),
	}
	there := func(name string) bool { _, ok := all[name]; return ok || name == "LICENSE" }
	if got, want := strings.Join(all["a.md"].links, " "), "b.md d/b.md#two"; got != want {
		t.Errorf("links %q, want %q", got, want)
	}
	for _, tc := range []struct{ from, to, want string }{
		{"a.md", "d/b.md#two", ""},
		{"a.md", "LICENSE", ""},
		{"a.md", "#where-x-is-and-why", ""},
		{"a.md", "d/b.md#three", "d/b.md has no heading #three"},
		{"a.md", "#no-heading", "a.md has no heading #no-heading"},
		{"a.md", "b.md", "there is no b.md"},
		{"d/far.md", "b.md#row-3", ""},
		{"d/b.md", "../c.md", "there is no c.md"},
	} {
		if got := dead(all, there, tc.from, tc.to); got != tc.want {
			t.Errorf("%s in %s: %q, want %q", tc.to, tc.from, got, tc.want)
		}
	}
	if got := clicks(all, "d/far.md"); len(got) != 3 || got["a.md"] != 2 {
		t.Errorf("clicks from d/far.md: %v, want b.md 1, a.md 2, and lost.md not at all", got)
	}
}
