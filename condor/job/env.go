package job

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"podstarter/classads"
)

// Env is a set of environment variables.
type Env struct {
	vars map[string]string
	bare map[string]bool // unexpanded $$() texts that are kept without "="
	size int             // of what was merged, as the kernel counts it
}

// NewEnv returns an empty environment.
func NewEnv() *Env { return &Env{vars: map[string]string{}} }

// Set sets a variable. It ignores an empty name.
func (e *Env) Set(name, value string) {
	if name == "" {
		return
	}
	e.vars[name] = value
	delete(e.bare, name)
}

// Get returns a variable; false if it is not set.
func (e *Env) Get(name string) (string, bool) {
	v, ok := e.vars[name]
	return v, ok
}

// Strings returns "NAME=VALUE" for every variable, sorted by name as HTCondor
// sorts them.
func (e *Env) Strings() []string {
	all := make([]string, 0, len(e.vars))
	for _, name := range slices.Sorted(maps.Keys(e.vars)) {
		if e.bare[name] {
			all = append(all, name)
			continue
		}
		all = append(all, name+"="+e.vars[name])
	}
	return all
}

// V2 returns the environment in "V2 raw" syntax, as it is shown to people.
func (e *Env) V2() string { return JoinV2(e.Strings()) }

// MergeAd merges the job's own environment: Environment in V2 syntax, else
// Env in V1 syntax (condor_utils/env.cpp:Env::MergeFrom).
func (e *Env) MergeAd(ad *classads.Ad) error {
	if raw, err := ad.GetString("Environment"); err == nil {
		if err := e.MergeV2(raw); err != nil {
			return fmt.Errorf("attribute Environment: %w", err)
		}
		return nil
	}
	if raw, err := ad.GetString("Env"); err == nil {
		if err := e.MergeV1(raw, ad.StringOr("EnvDelim", "")); err != nil {
			return fmt.Errorf("attribute Env: %w", err)
		}
	}
	return nil
}

// MergeKnob merges a knob's value: V2 syntax if it begins with a double
// quote, else V1 (condor_utils/env.cpp:Env::MergeFromV1RawOrV2Quoted).
func (e *Env) MergeKnob(value string) error {
	if !IsV2Quoted(value) {
		return e.MergeV1(value, "")
	}
	raw, err := UnquoteV2(value)
	if err != nil {
		return err
	}
	return e.MergeV2(raw)
}

// MergeV2 merges "V2 raw" text: words of SplitV2 that are NAME=VALUE.
func (e *Env) MergeV2(raw string) error {
	words, err := SplitV2(raw)
	if err != nil {
		return err
	}
	for _, word := range words {
		if err := e.mergeWord(word); err != nil {
			return err
		}
	}
	return nil
}

// v1Delimiters are the characters with which V1 text may begin to choose the
// delimiter of its entries (condor_utils/env.cpp:is_permitted_delim).
const v1Delimiters = "!#$%&*+,-/:;<>?@^`|~\x1f"

// MergeV1 merges "V1 raw" text: NAME=VALUE entries separated by line feeds and by
// a delimiter. The delimiter is the text's first character if it is a permitted
// one, else delim, else a semicolon. White space before an entry is ignored;
// there is no quoting (condor_utils/env.cpp:Env::MergeFromV1AutoDelim).
func (e *Env) MergeV1(raw, delim string) error {
	if raw == "" {
		return nil
	}
	separator := byte(';')
	if delim != "" {
		separator = delim[0]
	}
	if c := raw[0]; c == separator || strings.IndexByte(v1Delimiters, c) >= 0 {
		separator, raw = c, raw[1:]
	}
	for raw != "" {
		raw = strings.TrimLeftFunc(raw, isSpace)
		end := strings.IndexFunc(raw, func(r rune) bool { return r == '\n' || r == rune(separator) })
		entry, rest := raw, ""
		if end >= 0 {
			entry, rest = raw[:end], raw[end+1:]
		}
		raw = rest
		if entry == "" {
			continue
		}
		if err := e.mergeWord(entry); err != nil {
			return err
		}
	}
	return nil
}

// mergeWord merges NAME=VALUE. A word with an unexpanded $$() but no "=" is kept
// as it is (condor_utils/env.cpp:Env::SetEnvWithErrorMessage).
func (e *Env) mergeWord(word string) error {
	name, value, ok := strings.Cut(word, "=")
	if e.size += len(word) + wordCost; e.size > mostWords {
		return errTooLong
	}
	switch {
	case !ok && strings.Contains(word, "$$"):
		e.Set(word, "")
		if e.bare == nil {
			e.bare = map[string]bool{}
		}
		e.bare[word] = true
		return nil
	case !ok:
		return fmt.Errorf("%s lacks '=' and a value", excerpt(word))
	case name == "":
		return fmt.Errorf("%s lacks a name before '='", excerpt(word))
	}
	e.Set(name, value)
	return nil
}

// Replace replaces a text in all values.
func (e *Env) Replace(old, replacement string) {
	for name, value := range e.vars {
		if strings.Contains(value, old) {
			e.vars[name] = strings.ReplaceAll(value, old, replacement)
		}
	}
}

// Import adds those variables of another environment that are not set yet and
// match the list: patterns with * separated by commas, semicolons or white space,
// case-insensitive; those with a leading ! exclude. Values with a line feed are
// left out (condor_utils/env.cpp:WhiteBlackEnvFilter).
func (e *Env) Import(environ []string, list string) {
	var include, exclude []string
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' || isSpace(r) }) {
		if rest, ok := strings.CutPrefix(item, "!"); ok {
			if rest != "" {
				exclude = append(exclude, rest)
			}
			continue
		}
		include = append(include, item)
	}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.Contains(value, "\n") || matchesAny(exclude, name) {
			continue
		}
		if len(include) > 0 && !matchesAny(include, name) {
			continue
		}
		if _, ok := e.vars[name]; !ok {
			e.Set(name, value)
		}
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches compares case-insensitively; * stands for any text.
func matches(pattern, name string) bool {
	escape := strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`, "/", "\x01")
	ok, err := path.Match(escape.Replace(strings.ToLower(pattern)), strings.ReplaceAll(strings.ToLower(name), "/", "\x01"))
	return err == nil && ok
}
