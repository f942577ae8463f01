package cli

import (
	"fmt"
	"time"

	"atoll/node/status"
)

// Unknown is text for values that were not measured.
const Unknown = "-"

// Percent writes a share, which is unknown where the whole is zero.
func Percent(part, whole float64) string {
	if whole == 0 {
		return Unknown
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// Measured writes a number that is zero where it was not measured.
func Measured(x float64, format string) string {
	if x == 0 {
		return Unknown
	}
	return fmt.Sprintf(format, x)
}

// Seconds writes a duration for people.
func Seconds(s float64) string {
	return status.Duration(time.Duration(s * float64(time.Second)).Round(time.Second))
}

// Plural is a number of things.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
