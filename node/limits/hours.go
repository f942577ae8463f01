package limits

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Hours are when a node may work, by the local time of day. The zero value is always.
type Hours struct {
	text    string
	windows []window
}

// window is a time of day on some weekdays. One that ends at or before its beginning goes on
// into the next day.
type window struct {
	days     [7]bool // by time.Weekday, of its beginning
	from, to int     // minutes since midnight
}

// dayMinutes is the length of a day of the clock; the days on which the clock is changed
// have an hour that is not there, or is there twice.
const dayMinutes = 24 * 60

// maxWindows bounds the windows that one text names: three a day of a week.
const maxWindows = 21

// ParseHours reads hours as people write them: 22-07, or several with commas, with minutes
// and weekdays where they matter: mon-fri 22:30-07, sat-sun. Weekdays without hours are whole
// days, and hours without weekdays are of every day.
func ParseHours(text string) (Hours, error) {
	h := Hours{text: strings.Join(strings.Fields(text), " ")}
	if h.text == "" {
		return h, nil
	}
	parts := strings.Split(strings.ToLower(h.text), ",")
	if len(parts) > maxWindows {
		return Hours{}, fmt.Errorf("hours %q have %d parts; use %d at most", text, len(parts), maxWindows)
	}
	for _, part := range parts {
		w, ok := parseWindow(strings.TrimSpace(part))
		if !ok {
			return Hours{}, fmt.Errorf("%q are no hours; write them like 22-07, 12:00-13:30 or mon-fri 22-07", strings.TrimSpace(part))
		}
		h.windows = append(h.windows, w)
	}
	return h, nil
}

func parseWindow(text string) (w window, ok bool) {
	days, hours, two := strings.Cut(text, " ")
	if !two {
		days, hours = "sun-sat", text
		if _, isDays := parseDays(text); isDays {
			days, hours = text, "00-24"
		}
	}
	if w.days, ok = parseDays(days); !ok {
		return w, false
	}
	from, to, ok := strings.Cut(strings.TrimSpace(hours), "-")
	if !ok {
		return w, false
	}
	begins, ok1 := parseMinute(from)
	ends, ok2 := parseMinute(to)
	w.from, w.to = begins, ends
	return w, ok1 && ok2 && begins != ends && begins < dayMinutes
}

// weekdays are their names, by time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// parseDays reads a weekday, or a range of them that may go on into the next week.
func parseDays(text string) (days [7]bool, ok bool) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	i, j := slices.Index(weekdays, first), slices.Index(weekdays, last)
	if i < 0 || j < 0 {
		return days, false
	}
	for days[i] = true; i != j; days[i] = true {
		i = (i + 1) % len(weekdays)
	}
	return days, true
}

// parseMinute reads a time of day, such as 7, 07 or 22:30, in minutes since midnight.
func parseMinute(text string) (minute int, ok bool) {
	hour, rest, exact := strings.Cut(text, ":")
	h, err := strconv.ParseUint(hour, 10, 8)
	if err != nil || h > 24 || len(hour) > 2 {
		return 0, false
	}
	var m uint64
	if exact {
		if m, err = strconv.ParseUint(rest, 10, 8); err != nil || m > 59 || len(rest) != 2 {
			return 0, false
		}
	}
	minute = int(60*h + m)
	return minute, minute <= dayMinutes
}

// Limited says whether there is a time at which the node may not work.
func (h Hours) Limited() bool { return len(h.windows) > 0 }

// String is the text that they were read from.
func (h Hours) String() string { return h.text }

// MarshalText and UnmarshalText are String and ParseHours: a running node is told its hours so.
func (h Hours) MarshalText() ([]byte, error) { return []byte(h.text), nil }

// UnmarshalText is told above.
func (h *Hours) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHours(string(text))
	return err
}

// Open says whether the node may work at a time, by the clock of its zone.
func (h Hours) Open(at time.Time) bool {
	if !h.Limited() {
		return true
	}
	minute, day := 60*at.Hour()+at.Minute(), at.Weekday()
	return slices.ContainsFunc(h.windows, func(w window) bool { return w.open(day, minute) })
}

func (w window) open(day time.Weekday, minute int) bool {
	if w.from < w.to {
		return w.days[day] && minute >= w.from && minute < w.to
	}
	before := (day + 6) % 7
	return w.days[day] && minute >= w.from || w.days[before] && minute < w.to
}

// nextWithin is how far Next looks: windows come again each week.
const nextWithin = 8 * 24 * time.Hour

// Next is the first minute after a time at which Open is another. ok is false where it never
// is. It looks at each minute, as a clock that is changed may open and close a window as
// well: that takes a millisecond or two, so callers keep the answer.
func (h Hours) Next(after time.Time) (next time.Time, ok bool) {
	if !h.Limited() {
		return next, false
	}
	open := h.Open(after)
	for next = after.Truncate(time.Minute); next.Sub(after) < nextWithin; {
		if next = next.Add(time.Minute); h.Open(next) != open {
			return next, true
		}
	}
	return time.Time{}, false
}
