package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// writeChart packages deploy/chart, whose links to other files of deploy/ become files. It returns the path of the package.
func (r Release) writeChart(dir string) (string, error) {
	folder := filepath.Join(r.Source, "deploy", "chart")
	c, err := loader.LoadDir(folder)
	if err != nil {
		return "", fmt.Errorf("reading the chart %s: %w", folder, err)
	}
	c.Metadata.Version, c.Metadata.AppVersion = chartVersion(r.Version), r.Version
	// All that is packaged has the time of the release, and not that of the checkout.
	c.ModTime, c.SchemaModTime = r.Time, r.Time
	for _, files := range [][]*common.File{c.Raw, c.Templates, c.Files} {
		for _, f := range files {
			f.ModTime = r.Time
		}
	}
	path, err := chartutil.Save(c, dir)
	if err != nil {
		return "", fmt.Errorf("packaging the chart %s: %w", folder, err)
	}
	return path, nil
}

// chartVersion is the version in the form that Helm wants, which is that of Semantic Versioning.
func chartVersion(version string) string {
	if v, ok := strings.CutPrefix(version, "v"); ok {
		return v
	}
	return "0.0.0-" + version
}
