package classads

const userFamily = "users"

// userFunctions ask about users (HTCondor src/condor_utils/compat_classad.cpp). The
// caller chooses the answers: in [Site].
var userFunctions = []builtin{
	{name: "userHome", family: userFamily, usage: "userHome(user [, default])",
		summary: "home directory of a user", min: 0, max: -1, eval: fnUserHome},
	{name: "userMap", family: userFamily, usage: "userMap(map, user [, preferred [, default]])",
		summary: "groups a map gives a user, or the preferred or first of them", min: 2, max: 4, eval: fnUserMap},
}

// homeSteps is how many steps a question for a home counts: its answer may take the reading of a file.
const homeSteps = 1000

func fnUserHome(ev *evaluator, sc *scope, c *call) Value {
	if len(c.args) < 1 || len(c.args) > 2 {
		return ev.fail("userHome takes one or two arguments")
	}
	var def string
	if len(c.args) == 2 {
		def, _ = ev.attempt(c.args[1], sc).Str()
	}
	user := ev.attempt(c.args[0], sc)
	switch {
	case user.kind == String && ev.env.Site.UserHome != nil:
		if ev.steps -= homeSteps; ev.steps < 0 {
			return ev.stop()
		}
		if dir, ok := ev.env.Site.UserHome(user.str); ok {
			return StringValue(dir)
		}
	case user.kind == Undefined, user.kind == String:
	case def == "":
		return ErrorValue("userHome: the user must be a string")
	}
	if def == "" {
		return Value{}
	}
	return StringValue(def)
}

func fnUserMap(ev *evaluator, sc *scope, c *call) Value {
	var in [4]Value
	for i, n := range c.args {
		in[i] = n.eval(ev, sc)
	}
	if in[0].kind != String || in[1].kind != String {
		if in[0].kind == Error || in[1].kind == Error {
			return ErrorValue("userMap: an argument is an error")
		}
		return in[3]
	}
	if ev.env.Site.UserMap == nil {
		return in[3]
	}
	groups, ok, err := ev.env.Site.UserMap(in[0].str, in[1].str, &ev.search)
	if err != nil {
		return ev.fail("userMap: " + err.Error())
	}
	if !ev.spend(len(groups)) {
		return Value{kind: Error}
	}
	if !ok {
		return in[3]
	}
	if len(c.args) == 2 {
		return StringValue(groups)
	}
	first, chosen := "", ""
	items(groups, ",", func(g string) bool {
		if first == "" {
			first = g
		}
		if in[2].kind == String && equalFold(g, in[2].str) {
			chosen = g
		}
		return chosen == ""
	})
	if chosen == "" {
		chosen = first
	}
	if chosen == "" {
		return in[3]
	}
	return StringValue(chosen)
}
