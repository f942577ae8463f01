package main

import (
	"encoding"
	"reflect"
	"strings"
	"testing"

	"atoll/node/limits"
)

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		quantity encoding.TextUnmarshaler // a pointer to it
		good     map[string]float64
		bad      string // texts with | between
		example  string // in their errors
	}{
		{new(amount), map[string]float64{"0": 0, "3000000": 3e6, "3e6": 3e6, "2.5e3": 2500, "20M": 20e6, "1.5B": 1.5e9, "2.3m": 2.3e6, "300 k": 3e5, "1T": 1e12, "1.001M": 1.001e6}, "|x|1.5|-1|1e300|NaN|M|20X|20MB|1.5K1", "3e6"},
		{new(size), map[string]float64{"10GB": 10e9, "500 mb": 5e8, "1.5TB": 1.5e12, "4096B": 4096, "10G": 10e9, "10GiB": 10 << 30, "1.1GB": 1.1e9, "7b": 7, "2kB": 2000, "0": 0}, "|GB|-1GB|ten|1e30TB|NaN|5XB|10|4096|1e9", "10GB"},
		{new(limits.Rate), map[string]float64{"20mbit": 20e6, "1.5 Gbit": 1.5e9, "20Mbps": 20e6, "2.3Mbit/s": 2.3e6, "9.6kbps": 9600, "1gbps": 1e9, "500kbit/s": 5e5, "1KBIT": 1000}, "|20|mbit|-1mbit|0mbit|NaNmbit|Infgbit|20MB|20MBps|1e9gbit|20MB/s|bps", "bit"},
	} {
		value := reflect.ValueOf(c.quantity).Elem()
		for text, want := range c.good {
			err := c.quantity.UnmarshalText([]byte(text))
			if got := value.Convert(reflect.TypeFor[float64]()).Float(); err != nil || got != want {
				t.Errorf("%v %q: %v, %v, want %v", value.Type(), text, got, err, want)
			}
		}
		for text := range strings.SplitSeq(c.bad, "|") {
			if err := c.quantity.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), c.example) {
				t.Errorf("%v %q: %v", value.Type(), text, err)
			}
		}
	}
	for text, want := range map[string]quota{
		"300GB/month": {Bytes: 300e9, Period: limits.Month}, "2 gb / Day": {Bytes: 2e9, Period: limits.Day}, "1.5TB/month": {Bytes: 1.5e12, Period: limits.Month},
	} {
		var q quota
		if err := q.UnmarshalText([]byte(text)); err != nil || q != want {
			t.Errorf("quota %q: %+v, %v", text, q, err)
		}
	}
	for _, text := range []string{"", "300GB", "/month", "0GB/month", "-1GB/month", "300GB/year", "300GB/month/day"} {
		if err := new(quota).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("quota %q is taken", text)
		}
	}
	if got := limits.Rate(16e6).BytesPerSecond(); got != 2e6 {
		t.Errorf("16 Mbit/s are %v bytes a second", got)
	}
}

func TestKeep(t *testing.T) {
	for text, want := range map[string]keep{"20GB": 20e9, "all": 0, " ALL ": 0, "1.5GiB": 3 << 29} {
		var k keep
		if err := k.UnmarshalText([]byte(text)); err != nil || k != want {
			t.Errorf("%q: %d, %v", text, k, err)
		}
	}
	for text, want := range map[string]string{
		"20":  `"20" has no unit; write it like 10GB or 500MB, or all for no limit`,
		"0":   `"0" leaves no room for a ledger; write a size like 20GB, or all for no limit`,
		"0GB": `"0GB" leaves no room`,
		"":    `"" is not a size`, "none": `"none" is not a size`, "-1GB": "is not a size",
	} {
		k := keep(7)
		if err := k.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || k != 7 {
			t.Errorf("%q: %d, %v; want %q", text, k, err, want)
		}
	}
}
