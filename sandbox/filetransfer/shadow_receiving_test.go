package filetransfer

import (
	"fmt"
	"io"
	"strings"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// receiveRole is FILETRANS_DOWNLOAD.
func (f *fakeShadow) receiveRole(s *cedar.Stream) error {
	final, err := s.GetInt()
	if err != nil {
		return err
	}
	info, err := getAd(s)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.final, f.info = final, info
	f.mu.Unlock()
	for i := 0; ; i++ {
		if f.cut != nil && f.cut(i) {
			return errCut
		}
		command, err := getInt(s)
		if err != nil {
			return err
		}
		if command == 0 {
			break
		}
		name, err := s.GetString()
		if err = end(s, err); err != nil {
			return err
		}
		if i == 0 || f.once {
			if err := f.grant(s, true); err != nil {
				return err
			}
			if f.refuse != nil {
				return s.Flush()
			}
			if i == 0 {
				if err := f.ask(s); err != nil {
					return err
				}
			}
		}
		r := received{Command: command, Name: name}
		switch command {
		case 5:
			if r.Data, err = s.GetString(); err == nil {
				err = s.EndOfMessage()
			}
		case 6:
			r.Mode, err = getInt(s)
		case 999:
			ad, e := getAd(s)
			if err = e; err == nil {
				r.Ad = ad.FormatOld()
				if f.sign != nil && ad.IntOr("SubCommand", 0) == 9 {
					s.PutAd(f.sign)
					if err = s.EndMessage(); err == nil {
						err = s.Flush()
					}
				}
			}
		default:
			if r.Mode, err = getInt(s); err != nil {
				return err
			}
			var b strings.Builder
			var to io.Writer = &b
			if f.discard {
				to = io.Discard
			}
			if _, err = s.GetFile(to, -1); err == nil {
				err = s.EndOfMessage()
			}
			r.Data = b.String()
		}
		if err != nil {
			return fmt.Errorf("item %d %q: %w", command, name, err)
		}
		if !f.discard {
			f.mu.Lock()
			f.got = append(f.got, r)
			f.mu.Unlock()
		}
	}
	if err := f.getAck(s); err != nil {
		return err
	}
	if f.beforeAck != nil {
		f.beforeAck()
	}
	return f.putAck(s)
}

func (f *fakeShadow) putAck(s *cedar.Stream) error {
	if f.mangle != nil {
		f.mangle(s)
		return s.Flush()
	}
	ad := f.ack
	if ad == nil {
		ad = classads.NewAd()
		ad.SetInt("Result", 0)
		ad.SetAd("TransferStats", classads.NewAd())
	}
	s.PutAd(ad)
	return s.EndMessage()
}

func (f *fakeShadow) getAck(s *cedar.Stream) error {
	ad, err := getAd(s)
	if err != nil {
		return fmt.Errorf("starter's acknowledgement: %w", err)
	}
	f.mu.Lock()
	f.ackIn = ad
	f.mu.Unlock()
	return nil
}
