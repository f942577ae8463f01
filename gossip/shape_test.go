package gossip

import (
	"reflect"
	"strings"
	"testing"

	"atoll/gossip/peers"
)

// maxFields is how many fields a struct of state may have: a larger one is the state
// of several things.
const maxFields = 25

// No state of this package, or of those below it, outgrows maxFields, and each machine's state of a peer
// stays its own.
func TestStateIsSmall(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(typ.Elem())
		case reflect.Struct:
			if seen[typ] || !strings.HasPrefix(typ.PkgPath(), reflect.TypeFor[Core]().PkgPath()) {
				return
			}
			seen[typ] = true
			if n := typ.NumField(); n > maxFields {
				t.Errorf("%v has %d fields, at most %d: give what belongs together a struct of its own", typ, n, maxFields)
			}
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		}
	}
	visit(reflect.TypeFor[Core]())
	for _, n := range newNotes() {
		visit(reflect.TypeOf(n))
	}
	if !seen[reflect.TypeFor[peers.Peer]()] || len(seen) < 30 {
		t.Errorf("found %d structs: this test looks in the wrong place", len(seen))
	}
}
