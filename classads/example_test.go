package classads_test

import (
	"errors"
	"fmt"
	"time"

	"podstarter/classads"
)

func Example() {
	job, err := classads.ParseOld(`
Owner = "alice"
RequestMemory = 2 * 1024
Requirements = TARGET.Memory >= MY.RequestMemory
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	machine := classads.NewAd()
	machine.SetInt("Memory", 4096)

	memory, err := job.GetInt("RequestMemory")
	fmt.Println(memory, err)
	fmt.Println(job.Eval("Requirements", classads.Env{Target: machine}))
	// Output:
	// 2048 <nil>
	// true
}

// A job and a machine match if the Requirements of each are true of the other.
// Of the machines that match, the job prefers the one with the highest Rank.
func ExampleMatches() {
	job, err := classads.ParseOld(`RequestMemory = 2048
Requirements = TARGET.Memory >= MY.RequestMemory
Rank = TARGET.Mips
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{
		`[ Name = "small"; Memory = 1024; Mips = 9000; Requirements = true ]`,
		`[ Name = "slow"; Memory = 4096; Mips = 2000; Requirements = true ]`,
		`[ Name = "fast"; Memory = 4096; Mips = 9000; Requirements = TARGET.RequestMemory < 4096 ]`,
		`[ Name = "private"; Memory = 4096; Mips = 9000; Requirements = TARGET.Owner == "bob" ]`,
	} {
		machine, err := classads.ParseNew(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		if classads.Matches(job, machine, classads.Env{}) {
			fmt.Println(machine.StringOr("Name", "?"), classads.Rank(job, machine, classads.Env{}))
		}
	}
	// Output:
	// slow 2000
	// fast 9000
}

// MY and TARGET name the two ads of an evaluation. A plain name is looked up in
// MY first, and then in TARGET.
func ExampleExpr_Eval() {
	my, target := classads.NewAd(), classads.NewAd()
	my.SetInt("Memory", 1024)
	target.SetInt("Memory", 4096)
	target.SetString("Arch", "X86_64")
	for _, text := range []string{"Memory", "MY.Memory", "TARGET.Memory", "Arch", "MY.Arch", `MY.Arch == "X86_64"`, `MY.Arch =?= "X86_64"`} {
		e, err := classads.ParseExpr(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-21s is %s\n", text, e.Eval(classads.Env{My: my, Target: target}))
	}
	// Output:
	// Memory                is 1024
	// MY.Memory             is 1024
	// TARGET.Memory         is 4096
	// Arch                  is "X86_64"
	// MY.Arch               is undefined
	// MY.Arch == "X86_64"   is undefined
	// MY.Arch =?= "X86_64"  is false
}

func ExampleExpr_Equal() {
	a, _ := classads.ParseExpr("TARGET.Memory>=1024 && hasDocker")
	b, _ := classads.ParseExpr("Target.memory >= 1024 && HasDocker // the same")
	c, _ := classads.ParseExpr("HasDocker && TARGET.Memory >= 1024")
	fmt.Println(a.Equal(b), a.Equal(c))
	// Output:
	// true false
}

func ExampleExpr_References() {
	e, err := classads.ParseExpr("TARGET.Memory >= RequestMemory && regexp(\"^slot\", TARGET.Name)")
	if err != nil {
		fmt.Println(err)
		return
	}
	for r := range e.References() {
		fmt.Printf("%q in %q\n", r.Name, r.Scope())
	}
	// Output:
	// "Memory" in "TARGET"
	// "RequestMemory" in ""
	// "Name" in "TARGET"
}

// A walk finds the functions that an expression calls.
func ExampleExpr_Walk() {
	e, err := classads.ParseExpr(`strcat(toUpper(Owner), "@", { split(Name)[1] })`)
	if err != nil {
		fmt.Println(err)
		return
	}
	e.Walk(func(part *classads.Expr) bool {
		if name, arguments, ok := part.Call(); ok {
			fmt.Println(name, "with", len(arguments))
		}
		return true
	})
	// Output:
	// strcat with 3
	// toUpper with 1
	// split with 1
}

// A string that comes from elsewhere has to be quoted in the text of an
// expression.
func ExampleQuote() {
	name := `say "hi"\now`
	e, err := classads.ParseExpr("Name == " + classads.Quote(name))
	if err != nil {
		fmt.Println(err)
		return
	}
	ad := classads.NewAd()
	ad.SetString("Name", name)
	fmt.Println(e, "is", e.Eval(classads.Env{My: ad}))
	// Output:
	// Name == "say \"hi\"\\now" is true
}

// A time without an offset is in the zone of the parser.
func ExampleParser() {
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("CET", 3600)} {
		e, err := classads.Parser{Zone: zone}.Expr(`absTime("2024-02-29T12:00:00")`)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e)
	}
	// Output:
	// absTime("2024-02-29T12:00:00-00:00")
	// absTime("2024-02-29T12:00:00+01:00")
}

func ExampleAd_GetInt() {
	ad, _ := classads.ParseOld("A = 1\nB = Missing + 1\nC = \"text\"\n")
	for _, name := range []string{"A", "B", "C", "D"} {
		v, err := ad.GetInt(name)
		var wrong *classads.TypeError
		switch {
		case errors.Is(err, classads.ErrAbsent):
			fmt.Println(name, "is not there")
		case errors.Is(err, classads.ErrUndefined):
			fmt.Println(name, "depends on something that is not there")
		case errors.As(err, &wrong):
			fmt.Println(name, "is a", wrong.Got)
		default:
			fmt.Println(name, "is", v)
		}
	}
	// Output:
	// A is 1
	// B depends on something that is not there
	// C is a string
	// D is not there
}

func ExampleParseExpr() {
	e, err := classads.ParseExpr(`regexp("^slot1_[0-9]+@", Name) ? "dynamic" : "static"`)
	if err != nil {
		fmt.Println(err)
		return
	}
	slot := classads.NewAd()
	slot.SetString("Name", "slot1_3@host")
	v := e.Eval(classads.Env{My: slot})
	kind, _ := v.Str()
	fmt.Println(kind)
	_, err = classads.ParseExpr("1 + ")
	fmt.Println(err)
	// Output:
	// dynamic
	// ClassAd expression: expected an operand at the end of the text (byte 4)
}

func ExampleEnv() {
	e, _ := classads.ParseExpr(`formatTime(time(), "%F %T")`)
	v := e.Eval(classads.Env{Now: func() time.Time { return time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC) }})
	fmt.Println(v)
	// Output:
	// "2024-02-29 12:00:00"
}

func ExampleValue_Reason() {
	e, _ := classads.ParseExpr(`"12" + 1`)
	v := e.Eval(classads.Env{})
	fmt.Println(v, "-", v.Reason())
	// Output:
	// error - arithmetic with something that is not a number
}

func ExampleAd_FormatOld() {
	ad := classads.NewAd()
	ad.SetString("Cmd", `C:\bin\run.exe`)
	ad.SetReal("Load", 2)
	ad.SetList("Groups", classads.StringExpr("a"), classads.IntExpr(1))
	fmt.Print(ad.FormatOld())
	fmt.Println(ad.FormatNew())
	// Output:
	// Cmd = "C:\bin\run.exe"
	// Load = 2.0
	// Groups = { "a",1 }
	// [ Cmd = "C:\\bin\\run.exe"; Load = 2.000000000000000E+00; Groups = { "a",1 } ]
}
