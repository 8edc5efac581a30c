package classads

// Attributes that matching uses.
const (
	AttrRequirements = "Requirements"
	AttrRank         = "Rank"
)

// Accepts tells whether the Requirements of my are true for target. They are not
// true if they are absent, undefined or an error. The ads in env are not used.
func Accepts(my, target *Ad, env Env) bool {
	env.Target = target
	v := my.Eval(AttrRequirements, env)
	t, ok := v.truth()
	return ok && t
}

// Matches tells whether each of the two ads accepts the other
// (HTCondor src/classad/matchClassad.cpp:symmetricMatch).
func Matches(a, b *Ad, env Env) bool { return Accepts(a, b, env) && Accepts(b, a, env) }

// Rank returns how much my prefers target: the value of its Rank, or 0 if that
// is not a number.
func Rank(my, target *Ad, env Env) float64 {
	env.Target = target
	r, _ := my.Eval(AttrRank, env).Number()
	return r
}
