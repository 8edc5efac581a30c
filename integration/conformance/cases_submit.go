package conformance

// submitCases are what a submit description can say.
var submitCases = []Case{}
