package classads

import (
	"math"
	"math/big"
)

// powerBits is the precision of power's calculation. With it, the result is the
// nearest double in all but one of 2^60 cases. The C library that HTCondor uses is
// as good; math.Pow is not, and printed reals would differ.
const powerBits = 192

// power is pow(3).
func power(x, y float64) float64 {
	approximate := math.Pow(x, y)
	if approximate == 0 || math.IsNaN(approximate) || math.IsInf(approximate, 0) || x == 1 || x == -1 || y == 0 {
		return approximate
	}
	logarithm := naturalLog(math.Abs(x))
	result := exponential(logarithm.Mul(logarithm, bigFloat(y)))
	r, _ := result.Float64()
	return math.Copysign(r, approximate)
}

func bigFloat(f float64) *big.Float { return new(big.Float).SetPrec(powerBits).SetFloat64(f) }

// naturalLog is the logarithm of a positive number.
func naturalLog(x float64) *big.Float {
	mantissa, exponent := math.Frexp(x)
	if mantissa < math.Sqrt2/2 {
		mantissa *= 2
		exponent--
	}
	m := bigFloat(mantissa)
	one := bigFloat(1)
	ratio := new(big.Float).Quo(new(big.Float).Sub(m, one), new(big.Float).Add(m, one))
	log := areaTangent(ratio)
	e := bigFloat(float64(exponent))
	return log.Add(log, e.Mul(e, logOfTwo()))
}

// logOfTwo is the natural logarithm of 2.
func logOfTwo() *big.Float { return areaTangent(new(big.Float).Quo(bigFloat(1), bigFloat(3))) }

// areaTangent is 2 artanh(z) for a small z, by its series.
func areaTangent(z *big.Float) *big.Float {
	square := new(big.Float).Mul(z, z)
	term := new(big.Float).Set(z)
	sum := new(big.Float).Set(z)
	for k := 3.0; term.Sign() != 0 && term.MantExp(nil) > sum.MantExp(nil)-powerBits; k += 2 {
		term.Mul(term, square)
		sum.Add(sum, new(big.Float).Quo(term, bigFloat(k)))
	}
	return sum.Mul(sum, bigFloat(2))
}

// exponential is e to the power of t; the result must be near the range of a
// double.
func exponential(t *big.Float) *big.Float {
	log2 := logOfTwo()
	approximate, _ := new(big.Float).Quo(t, log2).Float64()
	twos := math.Round(approximate)
	rest := new(big.Float).Mul(bigFloat(twos), log2)
	rest.Sub(t, rest)
	const halvings = 8
	rest.SetMantExp(rest, -halvings)
	sum, term := bigFloat(1), bigFloat(1)
	for k := 1.0; term.Sign() != 0 && term.MantExp(nil) > -powerBits; k++ {
		term.Mul(term, rest)
		term.Quo(term, bigFloat(k))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, int(twos))
}
