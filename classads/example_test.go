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
	// error - arithmetic with something that is no number
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
