package exhaust

import (
	"cmp"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"sync"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// print is a running hash over values: FNV-1a over 64-bit words, with the high
// bits folded back. Nobody attacks it, and among a million states two have one
// hash with a chance of one in thirty million.
type print uint64

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (p *print) mix(x uint64) {
	*p = (*p ^ print(x)) * fnvPrime
	*p ^= *p >> 29
}

func (p *print) text(s string) {
	p.mix(uint64(len(s)))
	p.bytes([]byte(s))
}

func (p *print) bytes(b []byte) {
	for len(b) >= 8 {
		p.mix(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for _, x := range b {
		p.mix(uint64(x))
	}
}

// constant are types that are the same in all states: parameters, and what has a
// digest of its own.
var constant = []reflect.Type{
	reflect.TypeFor[core.Config](), reflect.TypeFor[gossip.Config](), reflect.TypeFor[outer.Params](), reflect.TypeFor[outer.Fragment](),
}

// idle names fields that decide nothing: the learner's scratch memory, caches, which
// only save time, and the ports of a replica, which lead back to the node and to what
// all nodes share.
var idle = map[string]bool{
	"values": true, "sum": true, "cache": true,
	"exec": true, "net": true, "watcher": true, "arithmetic": true, "ledger": true, "owner": true, "unlisted": true,
}

// shared is what several may point to, or each to its own copy, as it never changes.
var shared = reflect.TypeFor[*wire.SignedHeader]()

// walker hashes everything that can be reached from a value, fields that are not
// exported included. It cannot see what functions have captured. In the cores
// these say what to do when a call is answered. What they captured follows from
// the call's request, which is hashed with the node.
type walker struct {
	print
	met map[uintptr]uint64 // pointers, in order
}

// fingerprintOf is the same for values that are equal in all that may matter.
func fingerprintOf(values ...any) uint64 {
	w := walker{fnvOffset, map[uintptr]uint64{}}
	for _, v := range values {
		w.value(reflect.ValueOf(v))
	}
	return uint64(w.print)
}

func (w *walker) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			w.mix(1)
		} else {
			w.mix(2)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.mix(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.mix(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.mix(math.Float64bits(v.Float()))
	case reflect.String:
		w.text(v.String())
	case reflect.Array, reflect.Slice:
		w.list(v)
	case reflect.Map:
		w.table(v)
	case reflect.Struct:
		w.fields(v)
	case reflect.Pointer:
		w.pointer(v)
	case reflect.Interface:
		if !v.IsNil() {
			w.text(v.Elem().Type().String())
			w.value(v.Elem())
		}
	case reflect.Func:
		w.mix(3)
	default:
		panic("exhaust: a " + v.Kind().String() + " in a core")
	}
}

func (w *walker) list(v reflect.Value) {
	w.mix(uint64(v.Len()))
	if v.Type().Elem().Kind() == reflect.Uint8 {
		w.bytes(bytesOf(v))
		return
	}
	for i := range v.Len() {
		w.value(v.Index(i))
	}
}

// bytesOf are the bytes of a slice or an array, of one in a map as well, which has no address.
func bytesOf(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice || v.CanAddr() {
		return v.Bytes()
	}
	b := make([]byte, v.Len())
	for i := range b {
		b[i] = byte(v.Index(i).Uint())
	}
	return b
}

// table hashes a map in an order that depends on its keys alone.
func (w *walker) table(v reflect.Value) {
	type pair struct {
		key   uint64
		value reflect.Value
	}
	var pairs []pair
	for it := v.MapRange(); it.Next(); {
		k := walker{fnvOffset, nil}
		k.value(it.Key())
		pairs = append(pairs, pair{uint64(k.print), it.Value()})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	w.mix(uint64(len(pairs)))
	for _, p := range pairs {
		w.mix(p.key)
		w.value(p.value)
	}
}

func (w *walker) fields(v reflect.Value) {
	for i, name := range namesOf(v.Type()) {
		if !idle[name] {
			w.value(v.Field(i))
		}
	}
}

// names has the names of the fields of each struct, none of a constant one: to ask reflection for
// them takes longer than to hash the fields.
var names sync.Map

func namesOf(t reflect.Type) []string {
	if known, ok := names.Load(t); ok {
		return known.([]string)
	}
	var of []string
	if !slices.Contains(constant, t) {
		for i := range t.NumField() {
			of = append(of, t.Field(i).Name)
		}
	}
	names.Store(t, of)
	return of
}

// pointer follows a pointer once, and names it by when it was met.
func (w *walker) pointer(v reflect.Value) {
	if v.IsNil() {
		w.mix(4)
		return
	}
	if v.Type() == shared {
		w.value(v.Elem())
		return
	}
	if n, again := w.met[v.Pointer()]; again {
		w.mix(n)
		return
	}
	w.met[v.Pointer()] = uint64(len(w.met)) + 5
	w.value(v.Elem())
}
