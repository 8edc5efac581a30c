package main

import "strings"

// A reason says why cases of one file of tests end as they do.
type reason struct {
	test string
	// cases are what the names of cases contain; none are all of the file.
	cases []string
	// user is whose daemons it is about; "" is all.
	user string
	why  string
}

// differ are the reasons of cases that end in one way under the stock starter, and in another under ours.
var differ = []reason{}

// alike are the reasons of cases that fail under both.
var alike = []reason{}

// find returns the first reason that fits, and its index, or -1.
func find(reasons []reason, test, user, name string) (int, string) {
	for i, r := range reasons {
		if r.test != test || r.user != "" && r.user != user {
			continue
		}
		if len(r.cases) == 0 {
			return i, r.why
		}
		for _, c := range r.cases {
			if strings.Contains(name, c) {
				return i, r.why
			}
		}
	}
	return -1, ""
}
