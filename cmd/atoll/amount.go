package main

import (
	"fmt"
	"math"
	"strconv"
)

// amount is a whole number that may be typed as 3000000, 3e6 or 2.5e6.
type amount uint64

// maxAmount is the largest amount: up to it a float64 holds every whole number.
const maxAmount = 1 << 53

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *amount) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || x != math.Trunc(x) || x < 0 || x > maxAmount {
		return fmt.Errorf("%q is not a whole number; write it like 3000000 or 3e6", text)
	}
	*a = amount(x)
	return nil
}
