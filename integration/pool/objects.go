package main

import (
	"context"
	"errors"
	"os"

	"podstarter/integration/pool/internal/objects"
	"podstarter/integration/pool/internal/statedir"
)

// startObjects starts the object store, which most tests do not need. The web server has made its certificate.
func startObjects(ctx context.Context, dir statedir.Dir) error {
	p, err := openPool(dir, newProgress(os.Stdout), os.Stderr)
	if err != nil {
		return err
	}
	if p.settings.Guests > 0 || p.settings.Ports[objects.Name] == 0 {
		return errors.New("there is an object store only in a pool on this machine itself that is up")
	}
	return objects.Server{
		Dir: dir.Path("objects"), Log: dir.Path("log", "objects-access.log"), Components: dir.Source("integration", "components"),
		Certificate: dir.Path("web", "pki", "server.crt"), Key: dir.Path("web", "pki", "server.key"), Port: p.settings.Ports[objects.Name],
	}.Start(ctx, p.daemons, p.store, p.log)
}
