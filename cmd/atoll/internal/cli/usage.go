package cli

import "fmt"

// UsageError is a command line that cannot be meant.
type UsageError struct {
	Text string
	Why  error // nil, or what errors.Is is to find
}

func (e *UsageError) Error() string { return e.Text }

func (e *UsageError) Unwrap() error { return e.Why }

// BadUsage is a UsageError that says what is wrong and what to type.
func BadUsage(format string, args ...any) error {
	return &UsageError{Text: fmt.Sprintf(format, args...)}
}

// CheckWhole refuses a whole number of a flag that is out of range, up to most unless that is 0. 0 is none given; none says
// what leaving it out is for, "" if the help does.
func CheckWhole(flag string, n, most int, none string) error {
	if n >= 0 && (most == 0 || n <= most) {
		return nil
	}
	use, out := "1 or more", "leave it out"
	if most > 0 {
		use = fmt.Sprintf("1 to %d", most)
	}
	if none != "" {
		out += " " + none
	}
	return BadUsage("%s is %d; use %s, or %s", flag, n, use, out)
}
