package image

import "sync"

// builtinMap is used after the site's own map. It covers the two trees of
// unpacked images that grid jobs name by path.
//
// singularity.opensciencegrid.org is made from a list of docker images: those of
// Docker Hub appear as namespace/name:tag, those of other registries, which have
// a dot in their name, with or without it; htc/ is OSG's own, from its registry
// (opensciencegrid/cvmfs-singularity-sync: docker_images.txt;
// osg-htc/user-documentation: available-containers-list.md). In unpacked.cern.ch
// the registry comes first, with another name for Docker Hub.
//
// Paths below /.images and /.flat are hashes of unpacked images, which no
// registry knows.
const builtinRules = `
* /^\/cvmfs\/singularity\.opensciencegrid\.org\/(htc\/[^.\/][^\/]*)$/  hub.opensciencegrid.org/\1
* /^\/cvmfs\/singularity\.opensciencegrid\.org\/([^.\/][^\/]*\.[^\/]*\/.+)$/  \1
* /^\/cvmfs\/singularity\.opensciencegrid\.org\/([^.\/][^\/]*\/.+)$/  docker.io/\1
* /^\/cvmfs\/unpacked\.cern\.ch\/registry\.hub\.docker\.com\/(.+)$/    docker.io/\1
* /^\/cvmfs\/unpacked\.cern\.ch\/([^.\/][^\/]*\.[^\/]*\/.+)$/          \1
`

var builtinMap = sync.OnceValue(func() *Map {
	m, err := ParseMap("built-in map", builtinRules)
	if err != nil {
		panic(err) // a test reads it
	}
	return m
})
