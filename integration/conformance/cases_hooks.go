package conformance

var hooksCases = []Case{}

// hooksSetup is empty until a case needs configuration.
var hooksSetup = Setup{}
