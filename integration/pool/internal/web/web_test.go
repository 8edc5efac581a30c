package web

import (
	"strings"
	"testing"
)

func TestConfigurationIsFilledIn(t *testing.T) {
	s := Server{Dir: "/state/web", Logs: "/state/log", Public: "/state/home/public", Ports: map[string]int{HTTP: 20001, HTTPS: 20002, Stranger: 20003}}
	got := s.config()
	if strings.Contains(got, "<<") {
		t.Errorf("something is not filled in:\n%s", got)
	}
	for _, line := range []string{
		"listen 127.0.0.1:20001 default_server;", "listen 127.0.0.1:20002 ssl default_server;", "listen 127.0.0.1:20003 ssl default_server;",
		"root /state/web/files;", "alias /state/home/public/;", "access_log /state/log/web-access.log requests;",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}
