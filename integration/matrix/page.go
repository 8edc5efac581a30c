package main

import (
	"fmt"
	"strings"
)

// pagePath is the page that is written from the record, below the project's directory.
const pagePath = "docs/admin/support.md"

// pageMark begins the generated rest of the page.
const pageMark = "<!-- generated from the record of integration/matrix; do not edit -->\n"

// table is the generated part of the page: every row, with what was run of it, or that nothing was.
func table(rows []Row, record Record) string {
	var b strings.Builder
	b.WriteString("| Kubernetes | containers | not as by default here | node | tests | run on | at |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		result, known := record[row.Name()]
		otherwise := strings.Join(row.Otherwise, " ")
		if otherwise != "" {
			otherwise = "`" + otherwise + "`"
		}
		cells := []string{row.Kubernetes, row.Node, otherwise, row.Where, "not run", "", ""}
		if known {
			cells = []string{row.Kubernetes, row.Node, otherwise, row.Where, result.outcome(row), result.Date, result.Source}
		}
		if known && result.Down == "" {
			n := result.Node
			cells[0] = n.Kubelet
			if n.APIServer != n.Kubelet {
				cells[0] += ", API server " + n.APIServer
			}
			cells[1] = strings.Replace(n.Runtime, "://", " ", 1)
			cells[3] = fmt.Sprintf("%s: %s, Linux %s", row.Where, n.System, n.Kernel)
		}
		for i, c := range cells {
			cells[i] = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(c)
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}
