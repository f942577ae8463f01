package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"atoll/node/limits"
)

// amount is a whole number that may be typed as 3000000, 3e6, 3M or 1.5B.
type amount uint64

// maxAmount is the largest amount: up to it a float64 holds every whole number.
const maxAmount = 1 << 53

// unit is what a letter behind a number stands for.
type unit struct {
	name  string
	times float64
}

// amountUnits are those that people write behind tokens and parameters.
var amountUnits = []unit{{"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *amount) UnmarshalText(text []byte) error {
	x, err := number(string(text), amountUnits)
	if err != nil || x != math.Trunc(x) || x < 0 || x > maxAmount {
		return fmt.Errorf("%q is not a whole number; write it like 20M, 3e6 or 3000000", text)
	}
	*a = amount(x)
	return nil
}

// String is the amount as it is typed.
func (a amount) String() string {
	for _, unit := range []unit{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}} {
		if n := uint64(unit.times); a != 0 && uint64(a)%n == 0 {
			return strconv.FormatUint(uint64(a)/n, 10) + unit.name
		}
	}
	return strconv.FormatUint(uint64(a), 10)
}

// number reads a number with one of the units behind it, in capitals or not, or with none.
func number(text string, units []unit) (float64, error) {
	digits, times := strings.ToUpper(strings.TrimSpace(text)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.name); ok {
			digits, times = strings.TrimSpace(rest), u.times
			break
		}
	}
	x, err := strconv.ParseFloat(digits, 64)
	return round(x * times), err
}

// round removes what a product with a power of ten added: 2.3 x 1e6 is no whole number.
func round(x float64) float64 {
	if whole := math.Round(x); math.Abs(x-whole) <= 1e-9*math.Abs(x) {
		return whole
	}
	return x
}

// size is a number of bytes that may be typed as 10GB, 500 MB, 1.5TB or 10GiB.
type size int64

// sizeUnits are powers of a thousand, as disks are sold, and with an i powers of 1024; those
// that end with another one come first.
var sizeUnits = []unit{
	{"TIB", 1 << 40}, {"GIB", 1 << 30}, {"MIB", 1 << 20}, {"KIB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}, {"B", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler. A number alone is refused, as nobody who
// types 10 for a disk means bytes; 0 is 0 in any unit.
func (s *size) UnmarshalText(text []byte) error {
	x, err := number(string(text), sizeUnits)
	if err != nil || !(x >= 0 && x < math.MaxInt64) {
		return fmt.Errorf("%q is not a size; write it like 10GB or 500MB", text)
	}
	if bare, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && bare != 0 {
		return fmt.Errorf("%q has no unit; write it like 10GB or 500MB", text)
	}
	*s = size(x)
	return nil
}

// String is the size as it is typed.
func (s size) String() string {
	for _, unit := range []unit{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KB", 1e3}, {"KiB", 1 << 10}} {
		if n := int64(unit.times); s != 0 && int64(s)%n == 0 {
			return strconv.FormatInt(int64(s)/n, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// keep is the disk space for a ledger, 0 if it may take all.
type keep int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *keep) UnmarshalText(text []byte) error {
	if strings.EqualFold(strings.TrimSpace(string(text)), "all") {
		*k = 0
		return nil
	}
	var s size
	if err := s.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or all for no limit", err)
	}
	if s == 0 {
		return fmt.Errorf("%q leaves no room for a ledger; write a size like 20GB, or all for no limit", text)
	}
	*k = keep(s)
	return nil
}

// String is the space as it is typed.
func (k keep) String() string {
	if k == 0 {
		return "all"
	}
	return size(k).String()
}

// quota is how many bytes may pass in a month or a day, typed as 300GB/month or 2GB/day.
type quota limits.Quota

// UnmarshalText implements encoding.TextUnmarshaler.
func (q *quota) UnmarshalText(text []byte) error {
	bytes, period, ok := strings.Cut(strings.TrimSpace(string(text)), "/")
	var of size
	if err := of.UnmarshalText([]byte(bytes)); err != nil || !ok || of == 0 {
		return fmt.Errorf("%q is not a quota; write it like 300GB/month or 2GB/day", text)
	}
	p, err := limits.ParsePeriod(strings.ToLower(strings.TrimSpace(period)))
	*q = quota{Bytes: uint64(of), Period: p}
	return err
}

// String is the quota as it is typed.
func (q quota) String() string { return fmt.Sprintf("%v/%s", size(q.Bytes), q.Period) }
