package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rate is what a link carries, in bits per second, that may be typed as 20mbit,
// 1.5 gbit or 500kbit. It always has a unit: bytes and bits are mixed up too easily.
type rate float64

// rateUnits are powers of a thousand, as links are sold.
var rateUnits = []struct {
	name string
	bits float64
}{{"GBIT", 1e9}, {"MBIT", 1e6}, {"KBIT", 1e3}}

// Limits of a rate: a modem's, and ten times the fastest port of today.
const (
	minRate = 1e3
	maxRate = 1e13
)

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rate) UnmarshalText(text []byte) error {
	number := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(string(text))), "/S")
	for _, u := range rateUnits {
		digits, ok := strings.CutSuffix(number, u.name)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if x *= u.bits; err != nil || math.IsNaN(x) || x < minRate || x > maxRate {
			break
		}
		*r = rate(x)
		return nil
	}
	return fmt.Errorf("%q is not the rate of a link; write it like 20mbit or 1gbit", text)
}

// bytesPerSecond of the link.
func (r rate) bytesPerSecond() float64 { return float64(r) / 8 }
