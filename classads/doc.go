// Package classads implements ClassAds, the language in which HTCondor
// describes jobs and machines and matches them. It reads and writes ads and
// expressions, evaluates them, and matches ads. It needs nothing but the
// standard library: no HTCondor, and no cgo.
//
// An [Ad] is an ordered set of named expressions. Names are compared without
// regard to case and keep the spelling they were inserted with. An [Expr] is
// a parsed expression; it never changes, so any number of goroutines may
// evaluate it at once, without locks. A [Value] is the result of an evaluation.
//
// # Formats
//
// There are two syntaxes. In the old one an ad has a line
// "Name = expression" for each attribute; daemons send ads to each other in it,
// and the tools print it with -long. In the new one an ad is
// "[ Name = expression; ... ]". They differ in how strings are written: the new
// syntax has the escapes of C, the old one only \". Functions with Old in their
// name read or write the old syntax.
//
// [ParseJSON] and [ParseXML] read what the tools print with -json and -xml. A
// [Reader] reads files that hold many ads, in any of the formats. An ad can also
// be a field of what [encoding/json] reads and writes: then it has the JSON of
// the tools, in which an expression is a string "\/Expr(...)\/". [Marshal] and
// [Ad.Unmarshal] convert between ads and Go structs.
//
// Every attribute is parsed when its ad is read. So a syntax error is known at
// once, and no lock is needed later.
//
// # Evaluation
//
// Besides ordinary values there are two more: undefined is the value of an
// attribute that does not exist, error that of an operation without meaning.
// Most operators pass both on. An evaluation therefore never returns a Go
// error. Its result may be a [Value] of kind [Error]; [Value.Reason] then says
// what went wrong, if that is known. The typed getters of [Ad] do return Go
// errors, which distinguish an absent attribute, an undefined one, and one of
// another type.
//
// The meaning of every expression is that in HTCondor 25.14 (src/classad and
// src/condor_utils/compat_classad.cpp), even where that is surprising: an
// attribute that refers to itself is undefined; relTime("5") is a real; a ?: b
// binds as strongly as a.b; comparing a list with a list is an error. FUNCTIONS.md
// lists the functions, and so does [Functions].
//
// # Time zones
//
// An absolute time has an offset from UTC. Where the text of a time has none,
// as in absTime("2024-02-29T12:00:00"), the parser takes that of [Parser.Zone],
// which is the local zone of the process by default. Later evaluations do
// not change it. Functions that need a zone, such as formatTime and absTime of
// a number, use the zone of [Env.Now], which is also the local zone by default.
// The function eval parses its argument in the zone of the evaluation.
// A program whose results must not depend on where it runs sets both.
//
// # Limits
//
// Input may come from anyone. The parser limits the size and the depth of the
// text that it accepts (see [Parser]). The evaluator limits the depth, the number
// of steps, and the bytes of strings and lists that it makes (see [Limits]).
//
// # Differences from HTCondor
//
// The tests behind the build tag differential compare this package with
// HTCondor's own library. The differences that remain are deliberate:
//
//   - In the old syntax an attribute must be one expression. HTCondor ignores text after it, as in "A = 1 garbage" or
//     "A = -00x1", and where it reads a whole expression still what follows a conditional, as in "1 ? 2 : 3 garbage". Half of
//     what somebody wrote would count, and nobody would be told. HTCondor's daemons never send such text.
//   - In lines of the old syntax a name that has =, a newline or NUL, or white space around it, or begins with one of # * - [ { <, is
//     quoted: written as it is, as HTCondor writes it, it would be read as another attribute, as none, or as the end of the ad.
//     A name with a newline is refused when it is read.
//   - After evalInEachContext, countMatches and unresolved, HTCondor continues in
//     the ad where it looked up the first argument, so names that follow mean
//     something else, above all in a match. Its Flatten also does so after
//     selecting from a nested ad. This package does not.
//   - pow of reals returns the nearest double; the C library sometimes returns
//     the one next to it.
//   - Times whose year does not fit in an int: HTCondor prints uninitialized
//     memory.
//   - A formatted time of more than 1022 bytes is an error; HTCondor returns what was in its buffer.
//   - Patterns do not support recursion, conditional groups, branch reset, control
//     verbs, callouts and Unicode properties. Bugs of PCRE2 are not reproduced,
//     such as \R?\s not matching a newline, or an anchor within (...){0} that
//     counts.
//   - The searches for patterns of one evaluation may together take ten million steps, so that no ad keeps a daemon busy.
//     HTCondor allows so many at each place where a match could begin, and counts them a little otherwise. So a search of very many
//     steps, above all with several .* in a long text, may be an error in one of the two alone.
//   - An evaluation may take a tenth of the steps that HTCondor allows, and a
//     limited amount of memory, which HTCondor does not limit.
//   - Ads keep the order of insertion. Text that an evaluation makes of an ad
//     has HTCondor's order, see [Ad.Sorted].
//   - Names of selected attributes and of functions are quoted in print where
//     they need it, and 5 .x keeps its space; HTCondor prints text that it
//     cannot read.
//   - Flatten keeps constants that HTCondor loses where operators of two kinds
//     meet, as in true && 1 + x or x | 10 | 2 * y. It also keeps the values of
//     functions that make lists.
//   - The function SlotEval is unknown, as it is to every daemon except the startd.
//   - Of the attributes of the ad that HTCondor puts around a match, only LEFT,
//     RIGHT, TARGET, OTHER and AD are known.
//   - In JSON surrogate pairs are joined, and an integer that does not fit in 64 bits is a real. What is not JSON is refused, since
//     other programs refuse it, too, and none writes it: stray commas, comments, TRUE for true, two strings in a row, text after
//     the ad, an ad in a list. Numbers are the exception: as in HTCondor they may be .5 or -01, but not 01.
//   - Lists and ads nest at most 500 deep in JSON and XML, too. HTCondor has a limit only for expressions, and dies of 100,000
//     brackets.
//
// Some text cannot be written in HTCondor's syntaxes, and so not here either.
// The old syntax cannot write a string that ends in a backslash within a list
// or before an operator, nor one with \" before a newline. Both syntaxes write
// reals with 16 digits, which is one too few for some.
package classads
