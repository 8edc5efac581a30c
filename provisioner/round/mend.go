package round

import (
	"context"

	"podstarter/provisioner/platform"
)

// mend has the platform make what units lack.
func (r *Round) mend(ctx context.Context) error {
	if m, ok := r.platform.(platform.Mender); ok {
		return r.call(ctx, m.Mend)
	}
	return nil
}
