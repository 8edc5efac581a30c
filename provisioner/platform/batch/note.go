package batch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/template"
)

// maxUser is how many bytes of a submitter's name the note keeps. No user of
// HTCondor has a name as long as that.
const maxUser = 512

// word makes one harmless word of anything: letters, digits and a few signs stay,
// and all other bytes are written as %XX. Whoever submits jobs chooses the name of
// the user, and must not add a line, an option, a quote or a macro to what a shell,
// a batch system or HTCondor reads.
func word(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '@', c == '.' && i > 0, c == '-' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unword is the reverse of word.
func unword(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("%q ends in the middle of a byte", shorten(s, 50))
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q has %q, which is no byte", shorten(s, 50), s[i:i+3])
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

// note writes what must be known of a unit beside its name, as one word.
func note(provisioner string, s platform.Spec) string {
	numbers := []int64{s.Size.CPUs, s.Size.Memory, s.Size.Disk, s.Size.GPUs}
	fields := []string{provisioner, s.Template, s.Shape}
	for _, n := range numbers {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	fields = append(fields, word(s.Group), word(s.User[:min(len(s.User), maxUser)]))
	return strings.Join(fields, ",")
}

// readNote reads a note. Whoever may change the job can make it say anything, so
// one that makes no sense is no error: its unit counts, and has nothing for jobs.
func readNote(text string) (provisioner string, s platform.Spec, ok bool) {
	f := strings.Split(text, ",")
	if len(f) != 9 {
		return "", platform.Spec{}, false
	}
	var n [4]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(f[3+i], 10, 64); err != nil || n[i] < 0 || n[i] > 1<<40 {
			return "", platform.Spec{}, false
		}
	}
	group, groupErr := unword(f[7])
	user, userErr := unword(f[8])
	if groupErr != nil || userErr != nil || !label.MatchString(f[0]) || !label.MatchString(f[1]) || !label.MatchString(f[2]) {
		return "", platform.Spec{}, false
	}
	return f[0], platform.Spec{Template: f[1], Shape: f[2], Size: resources.Amount{CPUs: n[0], Memory: n[1], Disk: n[2], GPUs: n[3]}, Group: group, User: user}, true
}

// label is what names of units, templates and shapes look like.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,98}[a-z0-9])?$`)

// check refuses a unit whose names could be more than names. They come from the
// site's files, which are checked as well.
func check(s platform.Spec) error {
	for _, name := range []string{s.Name, s.Template, s.Shape} {
		if !label.MatchString(name) {
			return fmt.Errorf("%q is no name of a unit, a template or a shape: at most 100 lower case letters, digits and hyphens", shorten(name, 100))
		}
	}
	return nil
}

// ofUnit are the placeholders of what is submitted.
var ofUnit = []string{"provisioner", "name", "template", "shape", "cpus", "memory", "disk", "gpus", "slots", "lifetime", "minutes", "user", "group", "note"}

// values are the values of the placeholders for one unit. Each is one word that
// does not begin with a hyphen.
func values(provisioner string, t template.Template, s platform.Spec) map[string]string {
	v := map[string]string{
		"provisioner": provisioner, "name": s.Name, "template": s.Template, "shape": s.Shape, "note": note(provisioner, s),
		"user": word(s.User[:min(len(s.User), maxUser)]), "group": word(s.Group),
	}
	// What is submitted is the whole unit: a glidein with all its slots.
	slots := int64(max(t.Slots, 1))
	numbers := map[string]int64{
		"cpus": s.Size.CPUs * slots, "memory": s.Size.Memory * slots, "disk": s.Size.Disk * slots, "gpus": s.Size.GPUs * slots, "slots": slots,
	}
	for _, shape := range t.Shapes {
		if shape.Name == s.Shape {
			numbers["lifetime"] = int64(shape.Lifetime.Seconds())
			numbers["minutes"] = int64(shape.Lifetime.Minutes())
		}
	}
	for key, n := range numbers {
		v[key] = strconv.FormatInt(n, 10)
	}
	for key, value := range v {
		if value == "" {
			v[key] = "none"
		}
	}
	return v
}
