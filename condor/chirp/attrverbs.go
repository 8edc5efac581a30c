package chirp

import (
	"context"

	"podstarter/classads"
	"podstarter/condor/shadow"
)

// attempt turns the error of a call without an answer into a reply.
func (x *session) attempt(err error) (reply, error) {
	if err != nil {
		return reply{code: x.code(err)}, nil
	}
	return reply{}, nil
}

func (x *session) setAttr(a []arg) (reply, error) {
	return x.attempt(x.o.Shadow.SetJobAttr(context.WithoutCancel(x.ctx), a[0].text, a[1].text))
}

func (x *session) getAttr(a []arg) (reply, error) {
	value, err := x.o.Shadow.GetJobAttr(context.WithoutCancel(x.ctx), a[0].text)
	if err != nil {
		return reply{code: x.code(err)}, nil
	}
	return reply{code: int64(len(value)), text: value}, nil
}

func (x *session) constrain(a []arg) (reply, error) {
	_, code := x.ask(shadow.FileRequest{Call: shadow.FileConstrain, Fields: fields(a, "s")})
	return reply{code: code}, nil
}

// ulog writes a line into the job's event log. The shadow does not report the
// result.
func (x *session) ulog(a []arg) (reply, error) {
	return x.attempt(x.o.Shadow.LogGeneric(context.WithoutCancel(x.ctx), a[0].text))
}

// refused is stock's odd answer for an attribute that may not be set. Clients
// that check the sign do not take it for a failure (io_proxy_handler.cpp, where
// the result is "not recorded").
const refused = 1

// setDelayed records an attribute for the next update. As in stock, a value that
// cannot be parsed is dropped, and the job is not told.
func (x *session) setDelayed(a []arg) (reply, error) {
	if len(a[1].text) > maxExpression {
		return reply{code: unknown}, nil // stock has no number for ENAMETOOLONG
	}
	e, err := classads.ParseExpr(a[1].text)
	if err != nil {
		x.complain.about(aboutUpdates, "The job set a delayed attribute to an invalid expression", "attribute", excerpt(a[0].text), "error", err)
		return reply{}, nil
	}
	if err := x.o.Attributes.put(a[0].text, e); err != nil {
		x.complain.about(aboutUpdates, "A delayed update by the job is refused", "error", err)
		return reply{code: refused}, nil
	}
	return reply{}, nil
}

// getDelayed answers from the starter's own data, without asking the shadow.
func (x *session) getDelayed(a []arg) (reply, error) {
	e, ok := x.o.Attributes.get(a[0].text)
	if !ok {
		e, ok = x.o.JobAttribute(a[0].text)
	}
	if !ok {
		return reply{code: doesntExist}, nil
	}
	text := e.String()
	return reply{code: int64(len(text)), text: text}, nil
}
