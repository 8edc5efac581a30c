package shadow

import (
	"context"

	"podstarter/internal/cedar"
)

// The calls below serve the job itself, through its chirp proxy; the shadow
// decides what is permitted.

// GetJobAttr returns an attribute of the job's ad in the queue, as an
// expression; "UNDEFINED" if it does not exist.
func (c *Client) GetJobAttr(ctx context.Context, attr string) (string, error) {
	a := ask(ctx, c, call{name: "get_job_attr", number: CallGetJobAttr, put: func(s *cedar.Stream) { s.PutString(attr) }},
		func(s *cedar.Stream, _ int64) (string, error) { return s.GetString() })
	return a.value, a.err
}

// SetJobAttr sets an attribute of the job's ad in the queue.
func (c *Client) SetJobAttr(ctx context.Context, attr, expr string) error {
	_, err := c.tell(ctx, call{name: "set_job_attr", number: CallSetJobAttr, put: func(s *cedar.Stream) {
		s.PutString(expr) // the value comes first on the wire
		s.PutString(attr)
	}})
	return err
}

// Constrain sets the job's Requirements.
func (c *Client) Constrain(ctx context.Context, expr string) error {
	_, err := c.tell(ctx, call{name: "constrain", number: CallConstrain, put: func(s *cedar.Stream) { s.PutString(expr) }})
	return err
}
