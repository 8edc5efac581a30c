package conformance

// policyCases are about what the queue does with a job that runs or has ended.
var policyCases = []Case{}
