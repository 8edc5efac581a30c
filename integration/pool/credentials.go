package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"podstarter/integration/pool/internal/image"
	"podstarter/integration/pool/internal/statedir"
)

// patProducer is the program on the submit side that gives the shadow its user's credentials for registries. HTCondor's own
// (condor_docker_pat_producer) asks Docker Hub for a token.
const patProducer = "/home/" + submitUser + "/.docker/producer"

// writePATProducer gives the submit side that program, and its user the credentials.
func (p *pool) writePATProducer() error {
	dir := p.dir.Path("home", submitUser, ".docker")
	auth := base64.StdEncoding.EncodeToString([]byte(image.Login))
	err := os.MkdirAll(dir, 0o755)
	for name, content := range map[string]string{
		"config.json": fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, privateRegistry(p.settings), auth),
		"producer":    "#!/bin/sh\nif [ -e \"$HOME/.docker/none\" ]; then echo '{\"HTCondorError\": \"no docker login for this user\"}'; exit 1; fi\nexec cat \"$HOME/.docker/config.json\"\n",
	} {
		if err == nil {
			err = statedir.WriteFile(filepath.Join(dir, name), []byte(content), 0o755)
		}
	}
	if err != nil {
		return fmt.Errorf("giving the submit side's user credentials for a registry: %w", err)
	}
	return nil
}
