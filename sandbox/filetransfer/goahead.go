package filetransfer

import (
	"fmt"
	"time"

	"podstarter/classads"
)

// The go-ahead handshake lets either side make the other wait, before the
// first item, for a place in the access point's transfer queue.
const (
	goAheadWait   = 0 // still waiting; said again and again
	goAheadOnce   = 1 // for this item
	goAheadAlways = 2 // for all items

	// leastAlive is the least time that a side must be ready to wait for the other's
	// next message.
	leastAlive = 300 * time.Second
	// aliveSlop is added to that for delays on the network.
	aliveSlop = 20 * time.Second
	// mostAlive bounds what a peer may ask for.
	mostAlive = 24 * time.Hour
)

// handshake exchanges go-aheads for an item, unless both sides have given one
// for all items. A receiver grants first, a sender asks first.
func (x *session) handshake(receiving bool) error {
	if receiving {
		if err := x.grant(true); err != nil {
			return err
		}
		return x.ask()
	}
	if err := x.ask(); err != nil {
		return err
	}
	return x.grant(false)
}

// grant tells the peer to go ahead (ObtainAndSendTransferGoAhead). A starter has no
// queue, so it grants at once, for all items.
func (x *session) grant(receiving bool) error {
	if x.ready {
		return nil
	}
	alive, err := x.s.GetInt()
	if err == nil {
		err = x.s.EndOfMessage()
	}
	if err != nil {
		return broken(x.code, "no question for a go-ahead from "+x.peer(), err)
	}
	ad := classads.NewAd()
	if least := int64(x.s.Longer(leastAlive) / time.Second); alive < least {
		ad.SetInt("Timeout", least)
		ad.SetInt("Result", goAheadWait)
		x.s.PutAd(ad)
		if err := x.s.EndMessage(); err != nil {
			return broken(x.code, "cannot send a go-ahead to "+x.peer(), err)
		}
	}
	ad.SetInt("Result", goAheadAlways)
	if receiving {
		ad.SetInt("MaxTransferBytes", -1) // the access point limits input itself
	}
	x.s.PutAd(ad)
	if err := x.s.EndMessage(); err != nil {
		return broken(x.code, "cannot send a go-ahead to "+x.peer(), err)
	}
	x.ready = true
	return nil
}

// ask waits for the peer's go-ahead (ReceiveTransferGoAhead), however long it
// keeps saying that it needs more time.
func (x *session) ask() error {
	if x.peerReady {
		return nil
	}
	alive := max(x.wait, leastAlive)
	x.s.PutInt(int64(alive / time.Second))
	if err := x.s.EndMessage(); err != nil {
		return broken(x.code, "cannot ask for a go-ahead from "+x.peer(), err)
	}
	x.s.SetTimeout(alive + aliveSlop)
	defer x.s.SetTimeout(x.wait)
	for {
		ad, err := x.getAd()
		if err != nil {
			return broken(x.code, "no go-ahead from "+x.peer(), err)
		}
		x.dog.stroke()
		result, err := ad.GetInt("Result")
		if err != nil {
			return &Error{Code: CodeBadGoAhead, Subcode: 1,
				Text: "GoAhead message missing attribute: Result. Full classad: [" + oneLine(ad.FormatOld()) + "]"}
		}
		if v, err := ad.GetInt("MaxTransferBytes"); err == nil {
			x.peerLimit = v
		}
		switch {
		case result < 0:
			return x.refused(ad)
		case result == goAheadWait:
			x.Log.Debug("waiting for a place in the access point's transfer queue")
			x.Progress(Progress{Waiting: true, Files: x.stats.files, Bytes: x.stats.bytes})
			if v := patience(ad); v > 0 {
				x.Log.Debug(fmt.Sprintf("Peer specified different timeout for GoAhead protocol: %d", int64(v/time.Second)))
				x.s.SetTimeout(v + aliveSlop)
			}
			continue
		case result == goAheadAlways:
			x.peerReady = true
		}
		return nil
	}
}

// patience is how long to wait for a peer that needs more time; 0 if the peer gives no
// time, or an absurd one.
func patience(ad *classads.Ad) time.Duration {
	v := ad.IntOr("Timeout", -1)
	if v <= 0 || v > int64(mostAlive/time.Second) {
		return 0
	}
	return time.Duration(v) * time.Second
}

// refused makes the error of a refused go-ahead.
func (x *session) refused(ad *classads.Ad) *Error {
	e := &Error{
		Code:     code32(ad, "HoldReasonCode"),
		Subcode:  code32(ad, "HoldReasonSubCode"),
		TryAgain: ad.BoolOr("TryAgain", true),
		Text:     peerText(ad.StringOr("HoldReason", "")),
	}
	if e.Code == 0 {
		e.Code = x.code
	}
	if e.Text == "" {
		e.Text = fmt.Sprintf("%s refused to let the file transfer go ahead", x.peer())
	}
	return e
}
