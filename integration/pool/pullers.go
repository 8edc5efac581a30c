package main

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPullers bounds the pullers of the execution point.
const maxPullers = 4

// pullerPods are the names of so many pullers.
func pullerPods(n int) []string {
	var names []string
	for i := range n {
		names = append(names, numbered("glidein-puller", i))
	}
	return names
}

// pullers is the configuration of an execution point with pullers, which are on the first node.
func (p *pool) pullers(node int) string {
	if p.settings.Pullers == 0 || node > 0 {
		return ""
	}
	return fmt.Sprintf("POD_STARTER_PULLERS = %s\n", strings.Join(pullerPods(p.settings.Pullers), ", "))
}

// pullerPlans are those that the settings ask for; gone are the pods of the others.
func (p *pool) pullerPlans() (plans []plan, gone []string) {
	for i, name := range pullerPods(maxPullers) {
		if i >= p.settings.Pullers {
			gone = append(gone, name)
			continue
		}
		one := plan{pod: name, source: "puller", images: map[string]string{"prepare": p.images["pilot"], "puller": p.images["pilot"]}}
		if i > 0 {
			one.suffix = strconv.Itoa(i + 1)
		}
		plans = append(plans, one)
	}
	return plans, gone
}
