package classads

import (
	"math"
	"strconv"
	"strings"
)

// appendReal writes a real as HTCondor does (src/classad/sink.cpp:UnparseReal):
// %.16G in the old syntax, with .0 where it would read as an integer, and
// %1.15E in the new one.
func appendReal(dst []byte, r float64, old bool) []byte {
	switch {
	case r == 0:
		if math.Signbit(r) {
			return append(dst, "-0.0"...)
		}
		return append(dst, "0.0"...)
	case math.IsNaN(r):
		return append(dst, `real("NaN")`...)
	case math.IsInf(r, -1):
		return append(dst, `real("-INF")`...)
	case math.IsInf(r, 1):
		return append(dst, `real("INF")`...)
	case !old:
		return strconv.AppendFloat(dst, r, 'E', 15, 64)
	}
	from := len(dst)
	dst = appendG(dst, r, 16, true)
	if !strings.ContainsAny(string(dst[from:]), ".E") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendG writes a real as C's %.<precision>g (or G) does. Go's 'g' differs:
// it keeps trailing zeros' place in the exponent rule differently.
func appendG(dst []byte, r float64, precision int, upperCase bool) []byte {
	if r == 0 {
		if math.Signbit(r) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], r, 'E', precision-1, 64)
	cut := strings.LastIndexByte(string(e), 'E')
	exponent, _ := strconv.Atoi(string(e[cut+1:]))
	if exponent >= -4 && exponent < precision {
		from := len(dst)
		dst = strconv.AppendFloat(dst, r, 'f', precision-1-exponent, 64)
		return trimZeros(dst, from)
	}
	from := len(dst)
	dst = append(dst, e[:cut]...)
	dst = trimZeros(dst, from)
	dst = append(dst, e[cut:]...)
	if !upperCase {
		for i := from; i < len(dst); i++ {
			dst[i] = lower(dst[i])
		}
	}
	return dst
}

// trimZeros removes the zeros at the end of a fraction, and a point without digits.
func trimZeros(dst []byte, from int) []byte {
	if strings.IndexByte(string(dst[from:]), '.') < 0 {
		return dst
	}
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	if dst[len(dst)-1] == '.' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// parseReal reads a real that the lexer has checked; beyond the range of a
// double it is infinite, as with strtod.
func parseReal(s string) float64 {
	r, _ := strconv.ParseFloat(s, 64)
	return r
}

// truncate cuts a real towards zero. What does not fit becomes the smallest
// integer, as with C++ on x86-64 and as HTCondor therefore has it.
func truncate(r float64) int64 {
	if math.IsNaN(r) || r >= 1<<63 || r < -1<<63 {
		return math.MinInt64
	}
	return int64(r)
}
