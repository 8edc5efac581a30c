package filetransfer

import (
	"podstarter/classads"
)

// putAck sends this side's verdict: nil for success (SendTransferAck).
func (x *session) putAck(verdict *Error) error {
	ad := classads.NewAd()
	ad.SetInt("Result", ackResult(verdict))
	stats := x.stats
	if verdict != nil && x.code == CodeDownload {
		// The shadow's own count of what it sent stays, as with stock, which adds up
		// bytes only when everything has arrived (file_transfer.cpp:DoDownload).
		stats.bytes = 0
	}
	ad.SetAd("TransferStats", stats.ad())
	if verdict != nil {
		ad.SetInt("HoldReasonCode", int64(verdict.Code))
		ad.SetInt("HoldReasonSubCode", int64(verdict.Subcode))
		ad.SetString("HoldReason", oneLine(verdict.Text))
	}
	x.s.PutAd(ad)
	if err := x.s.EndMessage(); err != nil {
		return err
	}
	return x.s.Flush()
}

func ackResult(verdict *Error) int64 {
	switch {
	case verdict == nil:
		return 0
	case verdict.TryAgain:
		return 1
	}
	return -1
}

// getAck receives the peer's verdict, nil for success (GetTransferAck).
func (x *session) getAck() *Error {
	ad, err := x.getAd()
	if err != nil {
		return broken(x.code, "no acknowledgement of the file transfer from "+x.peer(), err)
	}
	result, err := ad.GetInt("Result")
	if err != nil {
		return &Error{Code: CodeBadAck, Text: "Download acknowledgment missing attribute: Result"}
	}
	if result == 0 {
		return nil
	}
	return &Error{
		Code:     code32(ad, "HoldReasonCode"),
		Subcode:  code32(ad, "HoldReasonSubCode"),
		TryAgain: result > 0,
		Text:     peerText(ad.StringOr("HoldReason", "")),
	}
}

// code32 reads a code that a peer sent; one that does not fit becomes 0.
func code32(ad *classads.Ad, name string) int {
	v := ad.IntOr(name, 0)
	if v != int64(int32(v)) {
		return 0
	}
	return int(v)
}
