package podnet

// For the tests of what the real plugins make of this package's configurations.
var Hold, Release, Within = hold, release, within
