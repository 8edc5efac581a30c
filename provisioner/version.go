package main

import (
	"context"
	"io"
	"log/slog"

	"podstarter/provisioner/explain"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/template"
)

// nameVersion tells templates the version of HTCondor that their slots have. Without
// it they have the oldest that we support, so that a job which needs a later one gets
// no pod.
func nameVersion(ctx context.Context, templates []template.Template, words io.Writer) {
	version, err := pool.Version(ctx)
	if err != nil {
		slog.New(slog.NewJSONHandler(words, nil)).Warn("The version of HTCondor is not known; jobs that require a late one get no pods", "error", explain.Clean(err.Error()))
		return
	}
	for i := range templates {
		templates[i].Version = version
	}
}
