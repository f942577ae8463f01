package hello

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName bounds a name, in bytes of UTF-8: it stands in a column of a screen.
const MaxName = 32

// idDigits is how many characters that are all hexadecimal digits a person takes for an id.
const idDigits = 8

// CheckName says what is wrong with the name that the owner of a machine gives it. It is of letters and decimal digits of any
// script that can be seen, - _ . and single blanks, so that no screen is steered by it, and no word in it looks like an id.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > MaxName:
		return fmt.Errorf("%q has %d bytes; use 1 to %d", name[:min(len(name), MaxName)], len(name), MaxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%q is not UTF-8; use letters, digits, - _ . and blanks", name)
	case strings.Trim(name, " ") != name || strings.Contains(name, "  "):
		return fmt.Errorf("%q has blanks at an end, or two together; leave them out", name)
	}
	letters := false
	for _, c := range name {
		switch {
		case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c):
			return fmt.Errorf("%q has %+q in it, which nobody sees; leave it out", name, c)
		case unicode.IsLetter(c) || unicode.Is(unicode.Nd, c):
			letters = true
		case !strings.ContainsRune("-_. ", c):
			return fmt.Errorf("%q has %+q in it; use letters, digits, - _ . and blanks", name, c)
		}
	}
	if !letters {
		return fmt.Errorf("%q has neither a letter nor a digit in it; use one", name)
	}
	for _, word := range strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-_. ", c) }) {
		if strings.HasPrefix(word, "12D3Koo") || len(word) >= idDigits && strings.Trim(word, "0123456789abcdefABCDEF") == "" {
			return fmt.Errorf("%q looks like an id; use a name that has none", word)
		}
	}
	return nil
}

// Called is a record for members, with a name: it has no addresses.
func (r Record) Called(name string) Record {
	r.Addrs, r.Name = nil, name
	return r
}

// HostName is the name of a machine that the system calls host, without its domain, or "" where that makes none.
func HostName(host string) string {
	host, _, _ = strings.Cut(host, ".")
	host = strings.TrimRight(host[:min(len(host), MaxName)], "-_")
	if CheckName(host) != nil {
		return ""
	}
	return host
}
