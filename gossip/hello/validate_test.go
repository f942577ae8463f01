package hello

import (
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"role":              func(r *Record) { r.Role = "captain" },
		"no role":           func(r *Record) { r.Role = "" },
		"trainer":           func(r *Record) { r.Trainer = "magic" },
		"observer trains":   func(r *Record) { r.Role = Observer },
		"precision":         func(r *Record) { r.Precision = "f8" },
		"no precision":      func(r *Record) { r.Precision = "" },
		"long agent":        func(r *Record) { r.Agent = strings.Repeat("a", MaxString+1) },
		"escape in agent":   func(r *Record) { r.Agent = "\x1b[2J" },
		"newline in agent":  func(r *Record) { r.Agent = "a\nb" },
		"bidi in agent":     func(r *Record) { r.Agent = "a\u202eb" },
		"not UTF-8":         func(r *Record) { r.Agent = "\xff" },
		"device kind":       func(r *Record) { r.Devices[0].Kind = "\x00" },
		"device name":       func(r *Record) { r.Devices[0].Name = strings.Repeat("n", MaxString+1) },
		"no device":         func(r *Record) { r.Devices[0].Count = 0 },
		"many devices":      func(r *Record) { r.Devices[0].Count = MaxDeviceCount + 1 },
		"many device kinds": func(r *Record) { r.Devices = make([]Device, MaxDevices+1) },
		"rate NaN":          func(r *Record) { r.TokensPerSecond = math.NaN() },
		"rate infinite":     func(r *Record) { r.TokensPerSecond = math.Inf(1) },
		"rate negative":     func(r *Record) { r.UpBytesPerSecond = -1 },
		"rate too high":     func(r *Record) { r.DownBytesPerSecond = 2 * MaxRate },
		"started":           func(r *Record) { r.StartedMs = -1 },
		"no codec":          func(r *Record) { r.Codecs = nil },
		"many codecs":       func(r *Record) { r.Codecs = make([]uint8, MaxCodecs+1) },
		"many addrs":        func(r *Record) { r.Addrs = make([]string, MaxAddrs+1) },
		"addr":              func(r *Record) { r.Addrs[0] = "127.0.0.1:4001" },
		"empty addr":        func(r *Record) { r.Addrs[0] = "" },
		"long addr":         func(r *Record) { r.Addrs[0] = "/dns4/" + strings.Repeat("d", MaxAddrLen) },
		"control in addr":   func(r *Record) { r.Addrs[0] = "/dns4/a\tb" },
	} {
		r := testRecord(1)
		change(&r)
		if err := r.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantErr(t, err, ErrInvalid)
		}
	}
	ok(t, testRecord(1).Validate())
	ok(t, largestRecord().Validate())
}

func TestObserverNeedsNoPrecision(t *testing.T) {
	r := testRecord(1)
	r.Role, r.Trainer, r.Precision = Observer, "", ""
	ok(t, r.Validate())
}

func TestPrecisionClasses(t *testing.T) {
	seen := map[uint8]string{0: "no class"}
	for _, name := range []string{"f32", "bf16", "f16", "int8"} {
		class, err := PrecisionClass(name)
		ok(t, err)
		if other, dup := seen[class]; dup {
			t.Errorf("%s has the class of %s", name, other)
		}
		seen[class] = name
	}
	_, err := PrecisionClass("F32")
	wantErr(t, err, ErrInvalid)
}
