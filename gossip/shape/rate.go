package shape

import (
	"fmt"
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

// ParseRate reads what a link carries, such as 20mbit, 1.5 Gbit or 500kbit/s, in bits per
// second. It always has a unit: bytes and bits are mixed up too easily.
func ParseRate(text string) (float64, error) {
	number := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(text)), "/s")
	for _, unit := range rateUnits {
		digits, ok := strings.CutSuffix(number, unit.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if x *= unit.bits; err == nil && x >= MinRate && x <= MaxRate {
			return x, nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not the rate of a link; write it like 20mbit or 1gbit, from 8bit to 1000gbit", text)
}
