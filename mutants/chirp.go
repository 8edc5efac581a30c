package main

func chirpTests(run string) []tests { return []tests{{"condor/chirp", run}} }

// Mistakes in chirp, which serves the payload.
var chirpMutants = []mutant{
	{
		Name:  "chirp's flag to append is wrong",
		File:  "condor/chirp/fileverbs.go",
		Old:   `'a': 0x1000}`,
		New:   `'a': 0x0800}`,
		Tests: chirpTests("TestOpenFlags"),
	},
	{
		Name:  "chirp opens for reading what is to be read and written",
		File:  "condor/chirp/fileverbs.go",
		Old:   `flags = readWrite`,
		New:   `flags = readOnly + readWrite&^readWrite`,
		Tests: chirpTests("TestOpenFlags"),
	},
	{
		Name:  "a job uses files that the shadow has open for itself",
		File:  "condor/chirp/verbs.go",
		Old:   `if kinds[0] == 'i' && !x.isOpen(a[0].n, &r) {`,
		New:   `if kinds[0] == 'i' && !x.isOpen(a[0].n, &r) && a[0].n < 0 {`,
		Tests: chirpTests("TestRequests|TestClosedFile"),
	},
	{
		Name:  "files stay open over the loss of the shadow",
		File:  "condor/chirp/verbs.go",
		Old:   "\t\tclear(x.opened)\n",
		New:   "",
		Tests: chirpTests("TestShadowLost"),
	},
	{
		Name:  "a closed file can be used",
		File:  "condor/chirp/fileverbs.go",
		Old:   "\tdelete(x.opened, a[0].n)\n",
		New:   "",
		Tests: chirpTests("TestRequests|TestClosedFile"),
	},
	{
		Name:  "the largest request is refused",
		File:  "condor/chirp/fileverbs.go",
		Old:   `case a[1].n < 0 || a[1].n > shadow.MaxFileBytes:`,
		New:   `case a[1].n < 0 || a[1].n >= shadow.MaxFileBytes:`,
		Tests: chirpTests("TestLargestRequest"),
	},
	{
		Name:  "a file that was put is not closed",
		File:  "condor/chirp/fileverbs.go",
		Old:   "\tdefer x.ask(shadow.FileRequest{Call: shadow.FileClose, Fields: fd, Origin: opened.Origin})\n",
		New:   "",
		Tests: chirpTests("TestPutFile|TestPutThenAnotherClient"),
	},
	{
		Name:  "two clients ask the shadow at once",
		File:  "condor/chirp/server.go",
		Old:   `make(chan struct{}, 1),`,
		New:   `make(chan struct{}, 2),`,
		Tests: chirpTests("TestOneRequestAtATime"),
	},
	{
		Name:  "the beginning of the cookie is enough",
		File:  "condor/chirp/session.go",
		Old:   `subtle.ConstantTimeCompare([]byte(words[1]), []byte(x.o.Cookie)) == 1:`,
		New:   `subtle.ConstantTimeCompare([]byte(words[1]), []byte(x.o.Cookie)[:min(len(words[1]), len(x.o.Cookie))]) == 1:`,
		Tests: chirpTests("TestCookieIsAskedForInFull"),
	},
	{
		Name:  "the job's own clients give way to strangers",
		File:  "condor/chirp/strangers.go",
		Old:   `func(one *stranger) bool { return !one.own }`,
		New:   `func(one *stranger) bool { return one.own }`,
		Tests: chirpTests("TestWhoGivesWay"),
	},
	{
		Name:  "one delayed attribute too many is set",
		File:  "condor/chirp/delayed.go",
		Old:   `len(d.names) >= d.most {`,
		New:   `len(d.names) > d.most {`,
		Tests: chirpTests("TestDelayed"),
	},
	{
		Name:  "an update that did not arrive replaces what was set since",
		File:  "condor/chirp/delayed.go",
		Old:   `] && !d.pending.Has(name) {`,
		New:   `] {`,
		Tests: chirpTests("TestDelayed"),
	},
	{
		Name:  "the file of an answer that came in part stays open",
		File:  "condor/chirp/fileverbs.go",
		Old:   "\tif code <= 0 {\n\t\tbody.close()\n\t\treturn reply{code: code}, nil\n",
		New:   "\tif code <= 0 {\n\t\treturn reply{code: code}, nil\n",
		Tests: chirpTests("TestFullDisk"),
	},
	{
		Name:  "the file of a large answer stays open",
		File:  "condor/chirp/session.go",
		Old:   "\tif r.body != nil {\n\t\tdefer r.body.close()\n\t}\n",
		New:   "",
		Tests: chirpTests("TestLarge"),
	},
	{
		Name:  "a client that came at the end is served",
		File:  "condor/chirp/server.go",
		Old:   "\tif s.finished {\n\t\treturn false\n\t}\n\ts.conns[conn] = true",
		New:   "\ts.conns[conn] = true",
		Tests: chirpTests("TestLateClient"),
	},
}
