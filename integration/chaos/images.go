//go:build pool

package chaos

import (
	"fmt"
	"math/rand/v2"

	"podstarter/integration/harness"
	"podstarter/integration/podfailures"
)

// image is one that a job asks for.
type image struct {
	reference string
	name      string // what /image-name says in it
}

// none is the reference of a job without an image.
const none = "none"

// Of the jobs in a pool with pullers, one in so many has an image that was not on the
// node when the test began, and there are so many different ones.
const oneIn, different = 6, 24

// images gives the images of jobs. Those of the pool, and the default for jobs without one,
// are on the node after their first job; those of the registry have names of their own in
// each run.
func images(pool *harness.Pool, registry *podfailures.Registry, seed uint64) func(*rand.Rand) image {
	known := []image{{none, pool.DefaultImage}}
	for _, name := range []string{"busybox", "debian", "probe", "hostile"} {
		known = append(known, image{pool.Image(name), name})
	}
	return func(random *rand.Rand) image {
		if registry != nil && random.IntN(oneIn) == 0 {
			i := random.IntN(different)
			kind, name := []string{"good", "large", "slow"}[i%3], fmt.Sprintf("chaos-%d-%d", seed, i)
			return image{registry.Image(kind, name), kind + "/" + name}
		}
		return known[random.IntN(len(known))]
	}
}
