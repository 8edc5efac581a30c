package conformance

var toolsCases = []Case{}

// toolsSetup is empty until a case needs configuration.
var toolsSetup = Setup{}
