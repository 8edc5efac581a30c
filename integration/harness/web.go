package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Web is the web server of the pool; the paths under which it misbehaves are in
// integration/pool/internal/web/nginx.conf.
type Web struct {
	Plain    string // address over HTTP, without a slash at the end
	Secure   string // over HTTPS; see [Web.Trust]
	Stranger string // over HTTPS, with a certificate of an authority that nobody trusts
	// Proxied is an address that is reached through the site's proxy alone, which
	// the execution points have in their environment.
	Proxied string
	// Closed is an address at which nobody listens.
	Closed string
	// Bucket is the URL of the object store's bucket, with the scheme s3; see [Pool.StartObjects].
	Bucket string
	dir    string
	log    string
}

// WebToken is the one that /bearer/ and /put-bearer/ of the web server ask for.
const WebToken = "open-sesame"

// Web reads where the web server is.
func (p *Pool) Web() (Web, error) {
	text, err := os.ReadFile(filepath.Join(p.State, "settings.json"))
	if err != nil {
		return Web{}, fmt.Errorf("finding the web server: %w", err)
	}
	var settings struct{ Ports map[string]int }
	if err := json.Unmarshal(text, &settings); err != nil {
		return Web{}, fmt.Errorf("finding the web server: %w", err)
	}
	at := func(scheme, port string) string {
		return scheme + "://127.0.0.1:" + strconv.Itoa(settings.Ports[port])
	}
	return Web{
		Plain: at("http", "web-http"), Secure: at("https", "web-https"), Stranger: at("https", "web-stranger"),
		Proxied: "http://behind-the-proxy.invalid", Closed: "http://127.0.0.1:1",
		Bucket: at("s3", "objects") + "/bucket",
		dir:    filepath.Join(p.State, "web"), log: filepath.Join(p.State, "log", "web-access.log"),
	}, nil
}

// Macros are lines of a submit description that define the addresses which
// commands, the rest of it, use: $(WEB), $(WEBS), $(STRANGER), $(PROXIED),
// $(CLOSED), $(BUCKET), and $(WEB_HOST) for the first without its scheme.
func (w Web) Macros(commands string) string {
	var used strings.Builder
	for _, macro := range []struct{ name, value string }{
		{"WEB", w.Plain}, {"WEBS", w.Secure}, {"STRANGER", w.Stranger}, {"PROXIED", w.Proxied}, {"CLOSED", w.Closed},
		{"BUCKET", w.Bucket},
		{"WEB_HOST", strings.TrimPrefix(w.Plain, "http://")},
	} {
		if strings.Contains(commands, "$("+macro.name+")") {
			fmt.Fprintf(&used, "%s = %s\n", macro.name, macro.value)
		}
	}
	return used.String()
}

// Put makes the server serve a file at a path, which may contain directories.
func (w Web) Put(path string, content []byte) error {
	to := filepath.Join(w.dir, "files", path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("putting %s on the web: %w", path, err)
	}
	// Rename, so that nobody reads half of it.
	if err := os.WriteFile(to+".new", content, 0o644); err != nil {
		return fmt.Errorf("putting %s on the web: %w", path, err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		return fmt.Errorf("putting %s on the web: %w", path, err)
	}
	return nil
}

// UploadedTo is the file on this machine of an upload to a path below /put/.
func (w Web) UploadedTo(path string) string { return filepath.Join(w.dir, "put", path) }

// Trust makes both execution points trust the server's certificate, until
// [Web.Distrust].
func (w Web) Trust() error {
	authorities, err := filepath.Glob(filepath.Join(w.dir, "authority", "*.0"))
	if err != nil {
		return err
	}
	if len(authorities) == 0 {
		return errors.New("the web server has no authority")
	}
	for _, path := range authorities {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("trusting the web server: %w", err)
		}
		to := filepath.Join(w.dir, "certificates", filepath.Base(path))
		if err := os.WriteFile(to+".new", text, 0o644); err != nil {
			return fmt.Errorf("trusting the web server: %w", err)
		}
		if err := os.Rename(to+".new", to); err != nil {
			return fmt.Errorf("trusting the web server: %w", err)
		}
	}
	return nil
}

// Distrust undoes [Web.Trust].
func (w Web) Distrust() error {
	trusted, err := filepath.Glob(filepath.Join(w.dir, "certificates", "*"))
	if err != nil {
		return err
	}
	for _, path := range trusted {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("distrusting the web server: %w", err)
		}
	}
	return nil
}

// WebRequest is a request that the server has answered.
type WebRequest struct {
	Method        string `json:"method"`
	Line          string `json:"line"` // the first line of the request
	Host          string `json:"host"`
	Path          string `json:"uri"`
	Query         string `json:"query"`
	Port          string `json:"port"`
	Status        int    `json:"status"`
	Sent          int64  `json:"sent"` // bytes of the body
	Authorization string `json:"authorization"`
	Agent         string `json:"agent"`
	Range         string `json:"range"`
}

// Requests are those answered so far at paths with a prefix. The server logs them
// when an answer is over, a moment after the client has it.
func (w Web) Requests(prefix string) ([]WebRequest, error) {
	text, err := os.ReadFile(w.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the web server's log: %w", err)
	}
	return parseRequests(string(text), prefix)
}

func parseRequests(text, prefix string) ([]WebRequest, error) {
	var all []WebRequest
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var r WebRequest
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("reading the web server's log: %q: %w", line, err)
		}
		if strings.HasPrefix(r.Path, prefix) {
			all = append(all, r)
		}
	}
	return all, nil
}
