package main

func imageTreeTests(run string) []tests { return []tests{{"payload/imagetree", run}} }

func unpackerTests(run string) []tests { return []tests{{"unpacker", run}} }

// Mistakes about images that are files: reading them, and writing their files over a container's root.
var imageMutants = []mutant{
	{
		Name:  "an image's files go through links",
		File:  "payload/imagetree/place.go",
		Old:   ` | unix.RESOLVE_NO_SYMLINKS`,
		New:   ``,
		Tests: imageTreeTests("TestStaysInside"),
	},
	{
		Name:  "an image's files go into mounts",
		File:  "payload/imagetree/place.go",
		Old:   ` | unix.RESOLVE_NO_XDEV`,
		New:   ``,
		Tests: imageTreeTests("TestMounts"),
	},
	{
		Name:  "a directory of the container gets the rights that an image gives it",
		File:  "payload/imagetree/write.go",
		Old:   `const rights = 0o1777`,
		New:   `const rights = 0o7777`,
		Tests: imageTreeTests("TestWrite"),
	},
	{
		Name:  "a stream that breaks off between two files is a whole image",
		File:  "payload/imagetree/write.go",
		Old:   `errors.Is(err, io.EOF) && !whole.ended`,
		New:   `errors.Is(err, io.EOF)`,
		Tests: imageTreeTests("TestBrokenOff"),
	},
	{
		Name:  "a file of an image is written into what is there",
		File:  "payload/imagetree/write.go",
		Old:   `unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|`,
		New:   `unix.O_CREAT|`,
		Tests: imageTreeTests("TestStaysInside"),
	},
	{
		Name:  "a name may lead up",
		File:  "payload/imagetree/write.go",
		Old:   `part == "." || part == ".." ||`,
		New:   `part == "." ||`,
		Tests: imageTreeTests("TestStaysInside"),
	},
	{
		Name:  "container-root may be given files to write to",
		File:  "payload/validate.go",
		Old:   `func(name string) bool { return name != Stdin })`,
		New:   `func(name string) bool { return name == Stdout })`,
		Tests: []tests{{"payload", "TestValidate"}},
	},
	{
		Name:  "a directory may have several names",
		File:  "unpacker/squashfs/walk.go",
		Old:   `if m.met[word]&bit != 0 {`,
		New:   `if m.met[word]&bit != 0 && false {`,
		Tests: unpackerTests(""),
	},
	{
		Name:  "an image's names may lead up",
		File:  "unpacker/tarstream/tarstream.go",
		Old:   `name == ".", name == "..", `,
		New:   `name == ".", `,
		Tests: unpackerTests(""),
	},
	{
		Name:  "an image's files keep set-user-ID",
		File:  "unpacker/tarstream/tarstream.go",
		Old:   `const sticky, all, owner = 0o1000, 0o777, 0o500`,
		New:   `const sticky, all, owner = 0o7000, 0o777, 0o500`,
		Tests: unpackerTests("TestImages"),
	},
	{
		Name:  "what reads an image keeps all system calls",
		File:  "unpacker/confinement.go",
		Old:   `return append(missing, filtered(o)...)`,
		New:   `return missing`,
		Tests: unpackerTests("TestConfined"),
	},
	{
		Name:  "what reads an image keeps the file system",
		File:  "unpacker/confinement.go",
		Old:   `if err := rules.Apply(); err != nil {`,
		New:   `if err := error(nil); err != nil {`,
		Tests: unpackerTests("TestConfined"),
	},
	{
		Name:  "a directory image's links are followed",
		File:  "unpacker/tree/tree.go",
		Old:   `&st, unix.AT_SYMLINK_NOFOLLOW)`,
		New:   `&st, 0)`,
		Tests: unpackerTests(""),
	},
	{
		Name:  "a container with an image's files is kept for any other",
		File:  "k8sexec/fetch.go",
		Old:   `known.Files == files && files != unknownFiles`,
		New:   `known.Files == files`,
		Tests: []tests{{"k8sexec", "TestFill"}},
	},
	{
		Name:  "a container that is being filled is said to have nothing",
		File:  "k8sexec/fill.go",
		Old:   `known.Files = unknownFiles`,
		New:   `known.Files = ""`,
		Tests: []tests{{"k8sexec", "TestStarterDiesWhileFilling"}},
	},
	{
		Name:  "an image may be anywhere in the pilot",
		File:  "condor/image/file.go",
		Old:   `strings.HasPrefix(clean, root+"/")`,
		New:   `strings.HasPrefix(clean, "/")`,
		Tests: []tests{{"condor/image", "TestFiles"}},
	},
	{
		Name:  "files get past the list of allowed images",
		File:  "condor/image/file.go",
		Old:   `case len(s.allowed) > 0:`,
		New:   `case len(s.allowed) > 1e9:`,
		Tests: []tests{{"condor/image", "TestFiles"}},
	},
	{
		Name:  "the wrapper's program runs under any name",
		File:  "wrapper/agent/start.go",
		Old:   `case s.Itself && !slices.Contains(ownPrograms, s.Args[0]):`,
		New:   `case s.Itself && false:`,
		Tests: []tests{{"wrapper/agent", "TestItself"}},
	},
	{
		Name:  "an image's variables win over the job's",
		File:  "starter/payloadrun/apptainer.go",
		Old:   `do eval "command export`,
		New:   `do : "command export`,
		Tests: []tests{{"starter/payloadrun", "TestUnpacked"}},
	},
	{
		Name:  "half an image is an image",
		File:  "starter/imagefile/fill.go",
		Old:   `case !heard.whole:`,
		New:   `case !heard.whole && false:`,
		Tests: []tests{{"starter/imagefile", "TestFill"}},
	},
}
