package conformance

var shadowCases = []Case{}

// shadowSetup is empty until a case needs configuration.
var shadowSetup = Setup{}
