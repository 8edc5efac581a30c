package conformance

var steeringCases = []Case{}

// steeringSetup is empty until a case needs configuration.
var steeringSetup = Setup{}
