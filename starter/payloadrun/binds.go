package payloadrun

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"podstarter/payload"
)

// knobBinds is the site's expression for bind paths; without it the slot's attribute counts
// (singularity.cpp:setup). A job has a say only if the site's expression gives it one.
const (
	knobBinds = "SINGULARITY_BIND_EXPR"
	attrBinds = "SingularityBind"
)

// links are the places that have another name for the job: its sandbox, directories in it that take the place
// of the image's, and, in an image that is a file, what Apptainer would mount by bind paths.
func (j *Job) links(target targetDir) ([]payload.Link, error) {
	var all []payload.Link
	if target.at != "" {
		all = append(all, payload.Link{At: target.at, To: target.to})
	}
	_, scratch, err := j.underScratch()
	if err != nil {
		return nil, err
	}
	all = append(all, scratch...)
	var binds []payload.Link
	if j.Unpacked != nil {
		if binds, err = j.bindPaths(); err != nil {
			return nil, err
		}
	}
	for _, l := range binds {
		if !slices.Contains(all, l) { // site and job may name the same
			all = append(all, l)
		}
	}
	if len(all) > payload.MaxLinks {
		return nil, fmt.Errorf("%d bind paths lead to another name, and mount_under_scratch names %d directories; at most %d can be had together (%s, %s)",
			len(binds), len(scratch), payload.MaxLinks, attrBinds, knobBinds)
	}
	return all, nil
}

// bindPaths reads bind paths, each SOURCE[:TARGET[:OPTIONS]]. A source under its own name needs nothing: it
// is in the container if the pod mounts it there, and if not, it is left out, as stock leaves out
// what the machine does not have. Another name is a link.
func (j *Job) bindPaths() ([]payload.Link, error) {
	text := j.Machine.StringOr(attrBinds, "")
	if _, ok := j.Settings.Config.Lookup(knobBinds); ok {
		var err error
		if text, err = j.Settings.Config.EvalString(knobBinds, "", j.Machine, j.Ad); err != nil {
			j.Log.Warn("A knob is not understood, so that there are no bind paths", "knob", knobBinds, "error", err)
			text = ""
		}
	}
	var links []payload.Link
	for _, bind := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		source, rest, _ := strings.Cut(bind, ":")
		target, _, _ := strings.Cut(rest, ":")
		l := payload.Link{At: path.Clean(target), To: path.Clean(source)}
		if target == "" || l.At == l.To {
			if !path.IsAbs(source) {
				return nil, fmt.Errorf("the bind path %.200q (%s or %s) does not begin with a slash", bind, attrBinds, knobBinds)
			}
			continue
		}
		if err := l.Validate(); err != nil {
			return nil, fmt.Errorf("the bind path %.200q (%s or %s) is not possible here: nothing is mounted, so that a link has to do: %w", bind, attrBinds, knobBinds, err)
		}
		links = append(links, l)
	}
	return links, nil
}
