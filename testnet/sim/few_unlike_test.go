package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/trainer/corpus"
)

// fasterBar is how many times the bits of the fastest alone, in the same time, are allowed.
const fasterBar = 1.01

// Honest learners of unlike speeds come to no more than the fastest of them would alone. A slow one answers the rounds at
// which it has HMin steps.
func TestUnlikeSpeedsOfFew(t *testing.T) {
	if !longMode() {
		t.Skip("takes minutes: ATOLL_LONG=1 runs it")
	}
	alone := playFew(t, fewSeeds, honest(1)...)
	t.Logf("alone: %v", alone)
	for _, slow := range [][]int{{1, 1}, {1, 2}, {1, 4}, {1, 16}, {1, 1, 1}, {1, 1, 2}, {1, 1, 4}, {1, 1, 16}, {1, 2, 2}, {1, 4, 4}, {1, 16, 16}} {
		t.Run(strings.ReplaceAll(strings.Trim(fmt.Sprint(slow), "[]"), " ", ":"), func(t *testing.T) {
			var members []fewMember
			for _, s := range slow {
				members = append(members, fewMember{slow: s})
			}
			got := playFew(t, fewSeeds, members...)
			t.Logf("speeds 1:%v: %v, %.3f of the fastest alone", slow[1:], got, got.bits/alone.bits)
			if got.bits > fasterBar*alone.bits {
				t.Errorf("%.3f bits; the fastest alone comes to %.3f", got.bits, alone.bits)
			}
		})
	}
}

// Honest learners that are unlike in another way.
func TestUnlikeTextsOfFew(t *testing.T) {
	if !longMode() {
		t.Skip("takes minutes: ATOLL_LONG=1 runs it")
	}
	code, err := corpus.Open(corpus.GoCode)
	if err != nil {
		t.Skip(err)
	}
	text := prose(t).Train()
	half := func(part []byte) fewMember { return fewMember{text: corpus.New("half", slices.Clone(part))} }
	one, other := half(text[:len(text)/2]), half(text[len(text)/2:])
	tenth := half(text[:len(text)/10])
	row := func(name string, members ...fewMember) {
		t.Run(name, func(t *testing.T) {
			t.Logf("n=%d %s: %v", len(members), name, playFew(t, fewSeeds, members...))
		})
	}
	row("halves/n=2", one, other)
	row("halves/n=3", one, other, fewMember{})
	row("halves/n=4", one, other, one, other)
	for _, n := range []int{2, 3, 4} {
		row(fmt.Sprintf("alike/n=%d", n), honest(n)...)
		row(fmt.Sprintf("code/n=%d", n), append(honest(n-1), fewMember{text: code})...)
		row(fmt.Sprintf("tenth/n=%d", n), append(honest(n-1), tenth)...)
		row(fmt.Sprintf("frozen/n=%d", n), append(honest(n-1), fewMember{frozen: true})...)
	}
}
