// Package firstjob follows docs/admin/first-job.md as a new administrator would: it runs the commands of that page, in the
// place that the page names, with rights in one namespace and nothing prepared but what the page asks for. Its pool:
//
//	integration/.state/bin/pool up --network nat --controllers --slots 1
//	go -C integration test -tags pool -count=1 -v ./firstjob
package firstjob
