package commonfiles

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Key names a catalog: hexadecimal digits, whatever the names it was made of.
type Key string

// KeyOf is the key of a catalog of a user at an access point. Two catalogs of which anything
// differs have different keys, so that nobody gets the files of another by their name.
func KeyOf(user, accessPoint, name string) Key {
	h := sha256.New()
	for _, part := range []string{user, accessPoint, name} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return Key(hex.EncodeToString(h.Sum(nil)))
}
