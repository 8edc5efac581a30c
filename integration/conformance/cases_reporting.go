package conformance

var reportingCases = []Case{}

// reportingSetup is empty until a case needs configuration.
var reportingSetup = Setup{}
