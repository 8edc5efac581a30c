package filetransfer

import (
	"podstarter/classads"
)

// What command 999 may be about (file_transfer.cpp: TransferSubCommand).
const (
	subUploadURL = 7 // the sender reports what a plugin of its own has uploaded
	subReuseInfo = 8 // the sender asks which files the receiver has already
	subSignURLs  = 9 // the sender asks for signatures
)

// other receives an ad that says what the item is. An unknown item is not an error: it
// may come from a newer peer.
func (d *download) other() error {
	ad, err := d.getAd()
	if err != nil {
		return err
	}
	answer := classads.NewAd()
	switch sub := ad.IntOr("SubCommand", -1); sub {
	case subReuseInfo:
		answer.SetInt("Result", 1) // nothing is reused
	case subSignURLs:
		// An execution point cannot sign: refuse every URL, in a list of the requested
		// length.
		urls, _ := ad.GetList("SignList")
		refused := make([]*classads.Expr, len(urls))
		for i := range refused {
			refused[i] = classads.StringExpr("")
		}
		answer.SetList("SignList", refused...)
	default:
		d.Log.Debug("ignoring an item of an unknown kind", "subcommand", sub)
		return nil
	}
	d.s.PutAd(answer)
	if err := d.s.EndMessage(); err != nil {
		return err
	}
	return d.s.Flush()
}
