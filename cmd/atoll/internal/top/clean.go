package top

import (
	"reflect"
	"time"

	"atoll/node/status"
)

// clean makes every text of a status harmless for a terminal: names, hardware and reasons are what
// other machines say.
func clean(s *status.Snapshot) { cleanValue(reflect.ValueOf(s).Elem()) }

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(status.Printable(v.String()))
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
