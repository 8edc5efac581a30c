//go:build differential

package classads

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTimeFormatsAgainstHTCondor compares formatted times: all conversions, flags and widths, and what is no conversion.
func TestTimeFormatsAgainstHTCondor(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(*seed, 5))}
	conversions := strings.Split("a A b B c C d D e f F g G h H i I j J k K l L m M n N o p P q Q r R s S t T u U v V w W x X y Y z Z + % : / ! ~ é", " ")
	var queries []query
	for range *count {
		var format strings.Builder
		for range 1 + g.r.IntN(3) {
			format.WriteByte('%')
			for range g.r.IntN(3) {
				format.WriteString(g.pick("_", "-", "0", "^", "#"))
			}
			format.WriteString(g.pick("", "", "1", "3", "5", "12", "03", "25"))
			format.WriteString(g.pick("", "", "", "E", "O", "EO", "E5"))
			format.WriteString(g.pick(conversions...))
			format.WriteString(g.pick("", " ", "|", "x"))
		}
		format.WriteString(g.pick("", "", "", "%", "%5", "%E", "%_"))
		at := g.pick("1000000000", "0", "951782400", "-86401", "-99999999999", "99999999999", `[ Type = "AbsoluteTime"; Year = 2001; Month = 13; Day = 40; Hours = -3; Minutes = 7; Seconds = 61; Offset = 0 ]`,
			`splitTime(absTime("2001-09-09T01:46:40+05:30"))`, `absTime("2001-02-03T04:05:06-03:07")`)
		queries = append(queries, query{Expr: "formatTime(" + at + "," + StringExpr(format.String()).String() + ")"})
	}
	compareAnswers(t, queries)
}
