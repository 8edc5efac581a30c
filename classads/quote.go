package classads

// Quote returns s as a string literal of the new syntax, with its quotes. Use it
// to put a string into an expression that is built as text:
//
//	"TARGET.Machine == " + classads.Quote(host)
//
// To set an attribute to a string, use [Ad.SetString]. A ClassAd cannot contain
// the character NUL: parsers refuse a literal of a string with one.
func Quote(s string) string { return string(appendQuoted(nil, s, '"', printer{})) }

// QuoteOld returns s as a string literal of the old syntax, with its quotes. That
// syntax escapes only quotes. It cannot write a string with a newline or NUL, and
// a string that ends in a backslash only at the end of a line.
func QuoteOld(s string) string { return string(appendQuoted(nil, s, '"', printer{old: true})) }
