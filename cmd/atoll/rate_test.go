package main

import "testing"

func TestRate(t *testing.T) {
	for text, want := range map[string]rate{"20mbit": 20e6, "1.5 Gbit": 1.5e9, "500kbit/s": 5e5, "1KBIT": 1000} {
		var got rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "20", "mbit", "-1mbit", "0mbit", "NaNmbit", "Infgbit", "20MB", "1e9gbit"} {
		var got rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	if got := rate(16e6).bytesPerSecond(); got != 2e6 {
		t.Errorf("16 Mbit/s are %v bytes a second", got)
	}
}
