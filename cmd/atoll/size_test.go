package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"10GB": 10e9, "500 mb": 5e8, "1.5TB": 1.5e12, "4096": 4096, "7b": 7, "2kB": 2000, "0": 0} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1GB", "ten", "1e30TB", "NaN", "5XB"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}
