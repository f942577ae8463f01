package hello

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "lab 3", "Ann's"[:3], "gpu-01_x.y", "Jürgen", "实验室", "машина 7", "٣ أ", "cafe", "deadbee", "lab-3.deadbee", strings.Repeat("n", MaxName)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for bad, says := range map[string]string{
		"": "has 0 bytes", strings.Repeat("n", MaxName+1): "has 33 bytes", "a\xff": "not UTF-8", " a": "blanks", "a ": "blanks", "a  b": "blanks",
		"a\x1b[2J": `'\x1b'`, "a\u202eb": `'\u202e'`, "a\u200bb": `'\u200b'`, "a\u0301": `'\u0301'`, "a/b": "'/'", "a\u00a0b": `'\u00a0'`, "lab (2)": "'('",
		"-_.": "neither", "692b5545": "looks like an id", "DEADBEEF": "looks like an id", "12D3KooWGt": "looks like an id",
		"you 692b5545ee": `"692b5545ee" looks like an id`, "you-692b5545": "looks like an id", "a 12D3KooWGt": "looks like an id",
		"a\u3164b": `'\u3164' in it, which nobody sees`, "\u115f": "nobody sees", "\uffa0": "nobody sees",
	} {
		if err := CheckName(bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", bad, err, says)
		}
	}
}

func TestHostNames(t *testing.T) {
	for host, want := range map[string]string{
		"lab3": "lab3", "lab3.example.org": "lab3", "f00dfeedcafe": "", "": "", "a b\x00": "", strings.Repeat("n", 31) + "-b": strings.Repeat("n", 31),
	} {
		if got := HostName(host); got != want {
			t.Errorf("%q makes %q, want %q", host, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if name := HostName(rapid.String().Draw(t, "host")); name != "" && CheckName(name) != nil {
			t.Fatalf("makes %q, which is no name", name)
		}
	})
}
