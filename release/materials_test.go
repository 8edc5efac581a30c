package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestMaterials uses this test binary as the programs: the bill names its modules.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var texts [][]byte
	for range 2 {
		r, dir := sample(t)
		for _, arch := range architectures {
			for _, p := range programs {
				put(t, r.program(dir, p.Name, arch), string(program))
			}
		}
		if err := r.writeMaterials(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "podstarter.cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("the same programs give other bytes")
	}
	var bom cdx.BOM
	if err := json.Unmarshal(texts[0], &bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Component.Version != "v1.2.3" || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the bill of materials describes %+v", bom.Metadata)
	}
	components := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		if _, twice := components[c.BOMRef]; twice {
			t.Errorf("%s is there twice", c.BOMRef)
		}
		components[c.BOMRef] = c
	}
	for _, want := range []string{"condor_pod_starter-linux-amd64", "condor_pod_wrapper-linux-arm64", "pkg:golang/std@" + runtime.Version()[2:]} {
		if _, ok := components[want]; !ok {
			t.Errorf("%s is not there", want)
		}
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			if _, ok := components[ref]; !ok {
				t.Errorf("%s uses %s, which is not there", d.Ref, ref)
			}
		}
		if components[d.Ref].Type == cdx.ComponentTypeApplication && len(*d.Dependencies) < 2 {
			t.Errorf("%s uses %v only", d.Ref, *d.Dependencies)
		}
	}
}

func TestModuleWithPlus(t *testing.T) {
	const want = "pkg:golang/example.org/m@v2.0.0%2Bincompatible"
	if got := module("example.org/m", "v2.0.0+incompatible", "").PackageURL; got != want {
		t.Errorf("the URL is %s, want %s", got, want)
	}
}
