package classads

// Quote returns s as a string literal of the new syntax, with its quotes. Use it
// to put a string into an expression that is built as text:
//
//	"TARGET.Machine == " + classads.Quote(host)
//
// To set an attribute to a string, [Ad.SetString] is simpler and faster. A
// string with the character NUL cannot be written in a ClassAd: whoever reads
// the literal refuses it.
func Quote(s string) string { return string(appendQuoted(nil, s, '"', printer{})) }

// QuoteOld returns s as a string literal of the old syntax, with its quotes. The
// old syntax escapes nothing but the quotes. It has no way to write a newline
// or NUL, nor a backslash at the end unless the literal ends the line.
func QuoteOld(s string) string { return string(appendQuoted(nil, s, '"', printer{old: true})) }
