package provision

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// text is the template's file. Its slots have the site's attribute.
func (t Template) text(mark string) string {
	lines := fmt.Sprintf("name: %[1]s\nmanifest: %[1]s.yaml\nslots: %[2]d\npartitionable: %[3]t\nslot: |\n  %[4]s = %[5]q\n", t.Name, len(t.payloads()), t.Partitionable, Attribute, mark)
	return lines + t.Text
}

// payloads are the names of the payload containers.
func (t Template) payloads() []string {
	names := []string{"payload"}
	for i := 2; i <= t.Containers; i++ {
		names = append(names, fmt.Sprintf("payload-%d", i))
	}
	return names
}

// configuration is what the pods of the template have in addition, as docs/admin/size.md and gpus.md say.
func (t Template) configuration() string {
	names := strings.Join(t.payloads(), ", ")
	var lines []string
	if t.Containers > 1 {
		lines = append(lines, "POD_STARTER_CONTAINERS = "+names, fmt.Sprintf("NUM_SLOTS = %[1]d\nNUM_SLOTS_TYPE_1 = %[1]d", t.Containers))
	}
	if t.GPUs {
		lines = append(lines, "POD_STARTER_GPU_CONTAINERS = "+names)
	}
	if t.Partitionable {
		lines = append(lines, "NUM_SLOTS = 1", "NUM_SLOTS_TYPE_1 = 1", "SLOT_TYPE_1 = 100%", "SLOT_TYPE_1_PARTITIONABLE = True")
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// folder is that of the kustomization whose pods are the template's, beside those of deploy/.
func (t Template) folder(deploy string) (string, error) {
	const plain = "../provisioner/glidein"
	if !t.GPUs {
		return plain, nil
	}
	from, to := filepath.Join(deploy, "provisioner", "glidein"), filepath.Join(deploy, "provisioner", "glidein-gpu")
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return "", err
	}
	name := filepath.Join(to, "kustomization.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	const components = "components:\n"
	if !strings.Contains(string(text), components) {
		return "", fmt.Errorf("adding the component for GPUs: %s has no components", name)
	}
	return plain + "-gpu", os.WriteFile(name, []byte(strings.Replace(string(text), components, components+"  - ../../components/gpu\n", 1)), 0o644)
}

// several gives the Job of a manifest the payload containers of these names, all like the first, and returns the names and the texts
// of its ConfigMaps as well.
func several(manifest string, names []string) (string, map[string]string, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifest)))
	configs := map[string]string{}
	var all []string
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, "\n---\n") + "\n", configs, nil
		}
		if err != nil {
			return "", nil, err
		}
		text, err := utilyaml.ToJSON(document)
		if err != nil {
			return "", nil, err
		}
		var is object
		if err := json.Unmarshal(text, &is); err != nil {
			return "", nil, err
		}
		switch is["kind"] {
		case "Job":
			spec := is["spec"].(object)["template"].(object)["spec"].(object)
			for _, list := range []string{"initContainers", "volumes"} {
				if spec[list], err = copies(spec[list].([]any), names); err != nil {
					return "", nil, err
				}
			}
			if text, err = json.Marshal(is); err != nil {
				return "", nil, err
			}
		case "ConfigMap":
			configs[is["metadata"].(object)["name"].(string)] = string(text)
		}
		all = append(all, string(text))
	}
}

// copies adds copies of the first payload container, or of its volume, to a list, under the other names.
func copies(list []any, names []string) ([]any, error) {
	for _, item := range slices.Clone(list) {
		name := item.(object)["name"]
		if name != names[0] && name != "shm-"+names[0] {
			continue
		}
		text, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		for _, to := range names[1:] {
			var copied any
			// Beside the name these are its argument, its annotation and its volume.
			renamed := strings.NewReplacer(`"`+names[0]+`"`, `"`+to+`"`, "/control/"+names[0], "/control/"+to, "nonce-"+names[0], "nonce-"+to, "shm-"+names[0], "shm-"+to).Replace(string(text))
			if err := json.Unmarshal([]byte(renamed), &copied); err != nil {
				return nil, err
			}
			list = append(list, copied)
		}
	}
	return list, nil
}
