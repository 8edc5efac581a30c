// Package classads implements HTCondor's ClassAd language: reading and
// writing ads and expressions, and evaluating them.
//
// An [Ad] is an ordered set of named expressions; names are compared without
// regard to case and keep the spelling they were inserted with. An [Expr] is
// a parsed expression: it never changes and may be evaluated by any number of
// goroutines at once. A [Value] is what an evaluation yields.
//
// # Two syntaxes
//
// The old syntax is one attribute a line, "Name = expression", as daemons
// send ads to each other and as the tools print them with -long. The new
// syntax is "[ Name = expression; ... ]". They differ in how a string is
// written: in the old syntax only \" is special, in the new syntax the escapes
// of C are. Functions with Old in their name read or write the old syntax.
//
// Every attribute is parsed when it is read, not at first use: an ad of 400
// attributes takes some hundred microseconds, most attributes being literals
// that need one allocation, and so a syntax error is known at once and reading
// needs no lock afterwards.
//
// # Evaluation
//
// The language has four-valued logic: beside values there are undefined (an
// attribute that is not there) and error (an operation without meaning), and
// both travel through most operators. Evaluation therefore has no Go error:
// its result may be a [Value] of kind [Error], whose [Value.Reason] says what
// went wrong where that is known.
//
// The semantics are those of HTCondor 25.14 (src/classad and
// src/condor_utils/compat_classad.cpp).
//
// # Limits
//
// Input may come from anyone, so the parser bounds the size and the depth of
// what it accepts ([Parser]) and the evaluator bounds the depth, the number of
// steps and the bytes of strings it makes ([Limits]).
package classads
