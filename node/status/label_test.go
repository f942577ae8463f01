package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// machines have these names, and ids that begin with these digits.
func machines(of ...string) (peers []Peer) {
	for _, s := range of {
		id, name, _ := strings.Cut(s, " ")
		peers = append(peers, Peer{ID: (id + strings.Repeat("0", 64))[:64], Name: name})
	}
	Label(peers)
	return peers
}

func TestLabels(t *testing.T) {
	for _, c := range []struct {
		machines, labels []string
	}{
		{[]string{"69 lab", "f3 mac", "aa"}, []string{"lab", "mac", "aa00000000"}},
		{[]string{"69 lab", "f3 Lab"}, []string{"lab 69", "Lab f3"}},
		{[]string{"6912 lab", "6934 lab", "f3 lab"}, []string{"lab 6912", "lab 6934", "lab f3"}},
		{[]string{"69 lab", "f3 lab", "ab lab 69"}, []string{"lab 6900", "lab f3", "lab 69 ab"}}, // takes nobody's label
	} {
		peers := machines(c.machines...)
		for i, p := range peers {
			if p.Called() != c.labels[i] {
				t.Errorf("%q: %q is called %q, want %q", c.machines, p.ID[:4], p.Called(), c.labels[i])
			}
		}
	}
	if got := (Peer{Addr: "/ip4/192.0.2.1"}).Called(); got != "/ip4/192.0.2.1" {
		t.Errorf("one without an id is called %q", got)
	}
}

// Whatever names there are, no two machines are called the same, and each is found by its label.
func TestLabelsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var peers []Peer
		for i := range rapid.IntRange(1, 8).Draw(t, "machines") {
			name := rapid.SampledFrom([]string{"", "a", "A", "b", "a aa", "a aaaa", "a ab", "b aa"}).Draw(t, "name")
			begin := rapid.SampledFrom([]string{"aa", "aaaa", "ab"}).Draw(t, "digits")
			peers = append(peers, Peer{ID: (begin + fmt.Sprint(i) + strings.Repeat("0", 64))[:64], Name: name})
		}
		Label(peers)
		seen := map[string]bool{}
		for _, p := range peers {
			called := strings.ToLower(p.Called())
			if seen[called] {
				t.Fatalf("two are called %q: %+v", called, peers)
			}
			seen[called] = true
			if found := Meant(peers, p.Called()); !slices.ContainsFunc(found, func(f Peer) bool { return f.ID == p.ID }) {
				t.Fatalf("%q finds %q", called, Choices(found))
			}
		}
	})
}

// Nobody takes the place of another by a name that begins an id: both are choices.
func TestMeant(t *testing.T) {
	peers := machines("8a88e3 lab", "f3 lab", "f4 8a88", "aa mac", "bb f")
	for word, want := range map[string]string{
		"mac": "mac (aa00000000)", "MAC": "mac (aa00000000)", "lab": "lab 8a (8a88e30000), lab f3 (f300000000)", "lab f3": "lab f3 (f300000000)",
		"8a88": "lab 8a (8a88e30000), 8a88 (f400000000)", "f": "f (bb00000000)", "8A88E3": "lab 8a (8a88e30000)", "none": "", "": "",
	} {
		if got := Choices(Meant(peers, word)); got != want {
			t.Errorf("%q means %q, want %q", word, got, want)
		}
	}
}

func TestLabelsInTexts(t *testing.T) {
	peers := machines("8a88e3dd74 lab", "f3 mac")
	l := LabelsOf(peers)
	for text, want := range map[string]string{
		"connected 8a88e3dd74: learner":   "connected lab: learner",
		"by " + peers[1].ID + ", refused": "by mac, refused",
		"state 8a88e3dd7 and a8a88e3dd74": "state 8a88e3dd7 and a8a88e3dd74",
		"digest 0123456789":               "digest 0123456789",
	} {
		if got := l.In(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if l.Of(peers[0].ID) != "lab" || l.Of("0123456789ab") != "0123456789" || Labels(nil).Of("ab") != "ab" {
		t.Error("a machine is called otherwise")
	}
}

func TestClipMiddle(t *testing.T) {
	for s, want := range map[string]string{"lab 69": "lab 69", "Johns-MacBook-Pro 69": "Johns-…Pro 69", "": ""} {
		if got := ClipMiddle(s, 13); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
}
