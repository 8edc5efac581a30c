package conformance

var credentialsCases = []Case{}

// credentialsSetup is empty until a case needs configuration.
var credentialsSetup = Setup{}
