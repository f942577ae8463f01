package limits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of the rate of a link, in bits per second.
const (
	MinRate = 8.   // one byte
	MaxRate = 1e12 // a terabit
)

// rateUnits are powers of a thousand, as links are sold; the longer ones before the one that
// they end with.
var rateUnits = []struct {
	name string
	bits float64
}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// rateSpellings are other ways to write the same units.
var rateSpellings = strings.NewReplacer("gbps", "gbit", "mbps", "mbit", "kbps", "kbit", "bps", "bit", "bits", "bit")

// ParseRate reads what a link carries, such as 20mbit, 1.5 Gbit, 500kbit/s or 20Mbps, in bits
// per second. It always has a unit: bytes and bits are mixed up too easily.
func ParseRate(text string) (float64, error) {
	number := rateSpellings.Replace(strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "/s"))
	for _, unit := range rateUnits {
		digits, ok := strings.CutSuffix(number, unit.name)
		if !ok || isBytes(text) {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if x = whole(x * unit.bits); err == nil && x >= MinRate && x <= MaxRate {
			return x, nil
		}
		break
	}
	if isBytes(text) || strings.HasSuffix(number, "b") {
		return 0, fmt.Errorf("%q is not the rate of a link, as B is for bytes: write bits, such as 160mbit for 20 MB a second", text)
	}
	return 0, fmt.Errorf("%q is not the rate of a link; write it like 20mbit, 20Mbps or 1gbit, from 8bit to 1000gbit", text)
}

// Rate is what a link carries, in bits per second.
type Rate float64

// UnmarshalText reads it as ParseRate does.
func (r *Rate) UnmarshalText(text []byte) error {
	bits, err := ParseRate(string(text))
	*r = Rate(bits)
	return err
}

// BytesPerSecond are the bytes that the link carries.
func (r Rate) BytesPerSecond() float64 { return float64(r) / 8 }

// String is the rate as UnmarshalText reads it.
func (r Rate) String() string { return RateText(float64(r)) }

// isBytes says whether a text speaks of bytes: Bps has a capital letter then.
func isBytes(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), "Bps") }

// RateText is a rate as ParseRate reads it, in the largest unit of which there is one.
func RateText(bits float64) string {
	for _, unit := range rateUnits {
		if bits >= unit.bits {
			return strconv.FormatFloat(bits/unit.bits, 'f', -1, 64) + unit.name
		}
	}
	return "0bit"
}

// whole takes back what a product with a power of ten added to a number of bits.
func whole(x float64) float64 {
	if n := math.Round(x); math.Abs(x-n) <= 1e-9*math.Abs(x) {
		return n
	}
	return x
}
