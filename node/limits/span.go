package limits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span is a time above zero.
type Span time.Duration

// UnmarshalText reads a time that is written like 90m, 12h or 7d.
func (s *Span) UnmarshalText(text []byte) error {
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n > 0 && n < float64(math.MaxInt64/day)) {
			return fmt.Errorf("%q is not a time; write it like 12h or 7d", text)
		}
		*s = Span(n * float64(day))
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a time; write it like 12h or 7d", text)
	}
	*s = Span(d)
	return nil
}
