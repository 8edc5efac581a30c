package conformance

var chirpCases = []Case{}

// chirpSetup is empty until a case needs configuration.
var chirpSetup = Setup{}
