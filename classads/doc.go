// Package classads implements HTCondor's ClassAd language: reading and
// writing ads and expressions, evaluating them, matching ads.
//
// An [Ad] is an ordered set of named expressions; names are compared without
// regard to case and keep the spelling they were inserted with. An [Expr] is
// a parsed expression: it never changes and may be evaluated by any number of
// goroutines at once, without locks. A [Value] is what an evaluation yields.
//
// # Formats
//
// The old syntax is one attribute a line, "Name = expression", as daemons
// send ads to each other and as the tools print them with -long. The new
// syntax is "[ Name = expression; ... ]". They differ in how a string is
// written: in the old syntax only \" is special, in the new syntax the escapes
// of C are. Functions with Old in their name read or write the old syntax;
// [ParseJSON] and [ParseXML] read what the tools print with -json and -xml,
// and a [Reader] reads files of many ads. [Marshal] and [Ad.Unmarshal] convert
// from and to Go structs.
//
// Every attribute is parsed when it is read, not at first use, so a syntax error is
// known at once and reading needs no lock afterwards. Most attributes are literals,
// which cost little; docs/classads.md has the figures.
//
// # Evaluation
//
// The language has four-valued logic: beside values there are undefined (an
// attribute that is not there) and error (an operation without meaning), and
// both travel through most operators. Evaluation therefore has no Go error:
// its result may be a [Value] of kind [Error], whose [Value.Reason] says what
// went wrong where that is known. The typed getters of [Ad] do have Go errors,
// which tell an absent attribute from an undefined one and from one of another
// kind.
//
// The semantics are those of HTCondor 25.14 (src/classad and
// src/condor_utils/compat_classad.cpp), down to those that surprise: an
// attribute that refers to itself is undefined; relTime("5") is a real;
// a ?: b binds as strong as a.b; a list compared with a list is an error. The
// functions are listed in FUNCTIONS.md, by [Functions].
//
// # Limits
//
// Input may come from anyone, so the parser bounds the size and the depth of
// what it accepts ([Parser]) and the evaluator bounds the depth, the number of
// steps and the bytes of strings it makes ([Limits]).
//
// # Differences from HTCondor
//
// A test behind the build tag differential compares with HTCondor's own
// library on generated expressions. What remains different is so on purpose:
//
//   - An attribute in the old syntax must be an expression as a whole; HTCondor
//     ignores what follows one, as in "A = 1 garbage".
//   - After evalInEachContext, countMatches and unresolved HTCondor goes on in
//     the ad in which it looked for the first argument, so that names after
//     them mean something else, in a match above all; its Flatten does so after a
//     selection from a nested ad too. Here they do not.
//   - pow of reals yields the nearest double; the C library's sometimes the one
//     beside it.
//   - Times whose year does not fit in an int: HTCondor prints memory nobody
//     has written.
//   - Patterns know no recursion, conditional groups, branch reset, control
//     verbs, callouts and Unicode properties; PCRE2's own slips, such as \R?\s
//     not matching a newline, or an anchor counting within (...){0}, are not
//     followed.
//   - An evaluation may take a tenth of the steps that HTCondor allows, and a
//     bounded amount of memory, of which HTCondor has no bound.
//   - Ads keep the order of insertion. Text that an evaluation makes of an ad
//     has HTCondor's order, see [Ad.Sorted].
//   - Printing quotes selected attributes and functions whose names need it,
//     and 5 .x keeps its space: HTCondor prints what it cannot read.
//   - Flatten keeps constants that HTCondor loses where operators of two kinds
//     meet, as in true && 1 + x or x | 10 | 2 * y, and the values of functions that
//     make lists.
//   - SlotEval, which the startd alone has, is unknown, as it is to every other
//     daemon.
//   - Of the attributes of the ad that HTCondor puts around a match only LEFT,
//     RIGHT, TARGET, OTHER and AD are known.
//   - JSON must be JSON, with surrogate pairs; stray commas are refused.
//
// What the old syntax cannot write it cannot write here either: a string that
// ends in a backslash within a list or before an operator, and \" before a
// newline. Both syntaxes write reals with 16 digits, one too few for some.
package classads
