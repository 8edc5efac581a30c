package config

import (
	"fmt"
	"os/user"
	"regexp"
	"sync"

	"podstarter/classads"
	"podstarter/classads/usermap"
)

// skippedFiles is the default of LOCAL_CONFIG_DIR_EXCLUDE_REGEXP.
const skippedFiles = `^((\..*)|(.*~)|(#.*)|(.*\.rpmsave)|(.*\.rpmnew))$`

// Site returns what the configuration adds to the ClassAd language (HTCondor
// src/condor_utils/compat_classad.cpp:ClassAdReconfig): the maps of userMap(), the homes of
// userHome(), and whether evaluations are strict. It reads the maps' files. The problems are
// what counts for nothing; HTCondor's daemons tell of it in their logs.
func (c *Config) Site() (*classads.Site, []error) {
	var problems []error
	s := &classads.Site{}
	var err error
	if s.Strict, err = c.Bool("STRICT_CLASSAD_EVALUATION", false); err != nil {
		problems = append(problems, err)
	}
	homes, err := c.Bool("CLASSAD_ENABLE_USER_HOME", false) // True in the table of defaults
	if err != nil {
		problems = append(problems, err)
	}
	if homes {
		s.UserHome = (&accounts{homes: map[string]string{}}).home
	}
	maps, wrong := c.userMaps()
	if maps != nil {
		s.UserMap = maps.Lookup
	}
	return s, append(problems, wrong...)
}

// With returns the same configuration, whose expressions are evaluated with what the site adds
// to the language.
func (c *Config) With(s *classads.Site) *Config {
	with := *c
	with.site = s
	return &with
}

// userMaps reads the maps that the site has for starters (classad_usermap.cpp:reconfig_user_maps).
func (c *Config) userMaps() (*usermap.Maps, []error) {
	names := c.List(subsystem + "_CLASSAD_USER_MAP_NAMES")
	if len(names) == 0 {
		return nil, nil
	}
	var problems []error
	skip, err := regexp.Compile(c.String("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", skippedFiles))
	if err != nil {
		problems = append(problems, c.wrong("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP", "a regular expression of Go's syntax (RE2)", err))
		skip = regexp.MustCompile(skippedFiles)
	}
	maps := &usermap.Maps{}
	for _, name := range names {
		o := usermap.Options{Skip: skip}
		if o.Prefix, err = c.Bool("CLASSAD_USER_MAP_PREFIX_"+name, false); err != nil {
			problems = append(problems, err)
		}
		var one *usermap.Map
		var wrong []error
		path, isFile := c.Lookup("CLASSAD_USER_MAPFILE_" + name)
		text, isText := c.Lookup("CLASSAD_USER_MAPDATA_" + name)
		switch {
		case isFile:
			one, wrong, err = usermap.Read(path, o)
		case isText:
			one, wrong, err = usermap.Parse(name, text, o)
		default:
			err = fmt.Errorf("neither CLASSAD_USER_MAPFILE_%s nor CLASSAD_USER_MAPDATA_%s is set", name, name)
		}
		for _, w := range wrong {
			problems = append(problems, fmt.Errorf("%s_CLASSAD_USER_MAP_NAMES: the map %s: %w", subsystem, name, w))
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s_CLASSAD_USER_MAP_NAMES: the map %s cannot be used: %w", subsystem, name, err))
			continue
		}
		maps.Add(name, one)
	}
	return maps, problems
}

// accounts are users of the machine.
type accounts struct {
	mu    sync.Mutex
	homes map[string]string // of those that were asked for
}

const (
	// mostHomes is how many homes are kept: a job can ask for any number of users.
	mostHomes = 256
	// longestName is that of a user (LOGIN_NAME_MAX).
	longestName = 256
)

// home is a user's home directory. The program is linked statically: it reads /etc/passwd,
// and knows no other source of users.
func (a *accounts) home(name string) (string, bool) {
	if len(name) > longestName {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	dir, known := a.homes[name]
	if !known {
		if u, err := user.Lookup(name); err == nil {
			dir = u.HomeDir
		}
		if len(a.homes) < mostHomes {
			a.homes[name] = dir
		}
	}
	return dir, dir != ""
}
