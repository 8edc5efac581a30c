package conformance

// filesCases are about what goes in and comes out.
var filesCases = []Case{}
