package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// license is that of this project.
const license = "Apache-2.0"

// writeMaterials writes the software bill of materials in the format CycloneDX:
// each program, with its checksum and the modules that the Go command noted in
// it.
func (r Release) writeMaterials(dir string) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.Time.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "podstarter", Type: cdx.ComponentTypeApplication, Name: "podstarter", Version: r.Version,
			Licenses:   &cdx.Licenses{{License: &cdx.License{ID: license}}},
			Properties: &[]cdx.Property{{Name: "commit", Value: r.Commit}},
		},
	}
	modules := map[string]cdx.Component{}
	var built []cdx.Component
	var uses []cdx.Dependency
	whole := cdx.Dependency{Ref: "podstarter", Dependencies: &[]string{}}
	for _, arch := range architectures {
		for _, p := range programs {
			path := r.program(dir, p.Name, arch)
			component, parts, err := r.material(path)
			if err != nil {
				return err
			}
			built = append(built, component)
			*whole.Dependencies = append(*whole.Dependencies, component.BOMRef)
			use := cdx.Dependency{Ref: component.BOMRef, Dependencies: &[]string{}}
			for _, m := range parts {
				modules[m.BOMRef] = m
				*use.Dependencies = append(*use.Dependencies, m.BOMRef)
			}
			uses = append(uses, use)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		built = append(built, modules[ref])
	}
	uses = append([]cdx.Dependency{whole}, uses...)
	bom.Components, bom.Dependencies = &built, &uses
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("writing the bill of materials: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "podstarter.cdx.json"), text.Bytes(), 0o644)
}

// material is a program and the modules in it, Go's own library among them.
func (r Release) material(path string) (cdx.Component, []cdx.Component, error) {
	name := filepath.Base(path)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return cdx.Component{}, nil, fmt.Errorf("what is in %s: %w", name, err)
	}
	checksum, err := sum(path)
	if err != nil {
		return cdx.Component{}, nil, err
	}
	component := cdx.Component{
		BOMRef: name, Type: cdx.ComponentTypeApplication, Name: name, Version: r.Version,
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: checksum}},
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: license}}},
	}
	parts := []cdx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, moduleOf(m))
	}
	return component, parts, nil
}

func moduleOf(m *debug.Module) cdx.Component { return module(m.Path, m.Version, m.Sum) }

// module is one of Go's; its sum is that of go.sum.
func module(path, version, sum string) cdx.Component {
	// A path is part of the URL as it is; a version may have a plus sign.
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}
