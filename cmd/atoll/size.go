package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes that may be typed as 10GB, 500 MB, 1.5TB or 4096.
type size int64

// sizeUnits are powers of a thousand, as disks are sold.
var sizeUnits = []struct {
	name  string
	bytes float64
}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *size) UnmarshalText(text []byte) error {
	number, factor := strings.ToUpper(strings.TrimSpace(string(text))), 1.0
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if x *= factor; err != nil || !(x >= 0 && x < math.MaxInt64) {
		return fmt.Errorf("%q is not a size; write it like 10GB or 500MB", text)
	}
	*s = size(x)
	return nil
}
