package filetransfer

import (
	"strings"

	"podstarter/classads"
	"podstarter/sandbox/jobfiles"
)

// Files for S3 and the like are stored at URLs that the shadow has signed: the
// user's keys stay at the access point (file_transfer.cpp: computeFileList).

// signName takes the place of a file name. Stock senders send an empty one, which stock
// receivers of 25.14 refuse as a path outside of the sandbox.
const signName = "_condor_sign_urls"

// toSign says whether an item's destination needs a signature.
func (u *upload) toSign(it *jobfiles.Item) bool {
	switch strings.ToLower(jobfiles.URLScheme(it.URL)) {
	case "s3", "gs":
		return u.SignURLs
	}
	return false
}

// What is signed at a time. A signed URL is some hundred bytes longer than an unsigned
// one, and is kept until its file has been stored.
const (
	mostSigned      = 2000
	mostSignedBytes = 512 << 10
)

// signNext asks for signatures of the next items' destinations, if all items are known.
func (u *upload) signNext() error {
	var urls []string
	size := 0
	for ; u.unsignedFrom < len(u.plan.Held()) && len(urls) < mostSigned && size < mostSignedBytes; u.unsignedFrom++ {
		if it := &u.plan.Held()[u.unsignedFrom]; u.toSign(it) {
			urls = append(urls, it.URL)
			size += len(it.URL)
		}
	}
	return u.sign(urls)
}

// signOne replaces an item's URL by the signed one, and asks for the signature if there
// is none yet: of very many items each is signed when its turn comes.
func (u *upload) signOne(it *jobfiles.Item) error {
	if !u.toSign(it) {
		return nil
	}
	signed, asked := u.signed[it.URL]
	if !asked {
		if err := u.flush(); err != nil {
			return err
		}
		if err := u.signNext(); err != nil || u.unsigned {
			return err
		}
		signed, asked = u.signed[it.URL]
	}
	if !asked {
		if err := u.sign([]string{it.URL}); err != nil || u.unsigned {
			return err
		}
		signed = u.signed[it.URL]
	}
	delete(u.signed, it.URL)
	if signed != "" {
		it.URL = signed
	}
	return nil
}

// sign asks the shadow for signatures, and records a failure if it gives none.
func (u *upload) sign(urls []string) error {
	if len(urls) == 0 {
		return nil
	}
	if err := u.head(cmdOther, signName); err != nil {
		return err
	}
	list := make([]*classads.Expr, len(urls))
	for i, url := range urls {
		list[i] = classads.StringExpr(url)
	}
	ad := classads.NewAd()
	ad.SetInt("SubCommand", subSignURLs)
	ad.SetList("SignList", list...)
	u.s.PutAd(ad)
	if err := u.s.EndMessage(); err != nil {
		return err
	}
	answer, err := u.s.GetAd()
	if err == nil {
		err = u.s.EndOfMessage()
	}
	if err != nil {
		return err
	}
	if why, err := answer.GetString("HoldReason"); err == nil {
		e := &Error{Code: code32(answer, "HoldReasonCode"), Subcode: -1, Text: peerText(why)}
		if e.Code == 0 {
			e.Code = CodeDownload
		}
		if answer.Has("HoldReasonSubCode") {
			e.Subcode = code32(answer, "HoldReasonSubCode")
		}
		u.note(e)
		u.unsigned = true
		return nil
	}
	signed, _ := answer.GetList("SignList")
	if u.signed == nil {
		u.signed = make(map[string]string, len(urls))
	}
	for i, url := range urls {
		u.signed[url] = ""
		if i < len(signed) {
			u.signed[url], _ = signed[i].Str()
		}
	}
	return nil
}
