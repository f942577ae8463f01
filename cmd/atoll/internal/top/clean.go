package top

import (
	"reflect"
	"strings"
	"time"
	"unicode"

	"atoll/node/status"
)

// maxText is how much of a text is kept, in runes: more fits no screen.
const maxText = 400

// clean makes every text of a status harmless for a terminal: names, hardware and reasons are what
// other machines say.
func clean(s *status.Snapshot) { cleanValue(reflect.ValueOf(s).Elem()) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(printable(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			cleanValue(v.Field(i))
		}
	case reflect.Map:
		v.SetZero() // traffic by protocol, which the screen does not show
	}
}

// printable is a text without what moves a cursor, changes colours, turns the direction of text or
// hangs over other lines: one line of characters that each take their own place.
func printable(s string) string {
	n := 0
	return strings.Map(func(r rune) rune {
		if n++; n > maxText || unicode.Is(unicode.M, r) {
			return -1
		}
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
