package shards

import (
	"errors"
	"fmt"
	"math"
)

const (
	// MaxComponents bounds the corpora of a mixture: a learner holds a shard of each at least, 8 MiB.
	MaxComponents = 16
	// MaxWeight bounds weights, so that the sum of all weights times the steps of a window fits 64 bits.
	MaxWeight = 1_000_000
)

// Component is a corpus of a mixture. Its shards follow those of the components before it, in
// Shards and in HeldOut of the manifest.
type Component struct {
	Name    string   `json:"name"`
	Licence string   `json:"licence"`
	Digest  Digest   `json:"digest"`   // of the manifest that it had by itself
	Weight  uint64   `json:"weight"`   // rows are drawn from it in proportion to this
	Mirrors []string `json:"mirrors"`  // of its shards alone
	HeldOut int      `json:"held_out"` // shards of it
	Shards  int      `json:"shards"`
}

// Mixed tells whether a corpus has components.
func (m *Manifest) Mixed() bool { return len(m.Mixture) > 0 }

// Part is a corpus of a mixture with its shards.
type Part struct {
	Component
	Share   float64 // of the rows that are drawn, 0 to 1
	HeldOut []Shard
	Shards  []Shard
}

// Parts are the components of a mixture; a corpus that is none is its only part.
func (m *Manifest) Parts() []Part {
	if !m.Mixed() {
		c := Component{Name: m.Name, Licence: m.Licence, Weight: 1, HeldOut: len(m.HeldOut), Shards: len(m.Shards)}
		return []Part{{Component: c, Share: 1, HeldOut: m.HeldOut, Shards: m.Shards}}
	}
	total := uint64(0)
	for _, c := range m.Mixture {
		total += c.Weight
	}
	var parts []Part
	heldOut, train := m.HeldOut, m.Shards
	for _, c := range m.Mixture {
		p := Part{Component: c, Share: float64(c.Weight) / float64(total)}
		p.HeldOut, heldOut = heldOut[:c.HeldOut], heldOut[c.HeldOut:]
		p.Shards, train = train[:c.Shards], train[c.Shards:]
		parts = append(parts, p)
	}
	return parts
}

// Pass is how many tokens learners read, on average, until they have read as many of some part as
// that has: from then on they read text again.
func (m *Manifest) Pass() int64 {
	pass := math.Inf(1)
	for _, p := range m.Parts() {
		tokens, _ := Tokens(p.Shards)
		pass = min(pass, float64(tokens)/p.Share)
	}
	return int64(pass)
}

// MirrorsOf are the folders on the web that may have a shard: those of the corpus, then those of
// the components that the shard is of.
func (m *Manifest) MirrorsOf(d Digest) []string {
	mirrors := m.Mirrors
	if !m.Mixed() {
		return mirrors
	}
	for _, p := range m.Parts() {
		for _, list := range [][]Shard{p.HeldOut, p.Shards} {
			for _, s := range list {
				if s.Digest == d {
					return append(mirrors[:len(mirrors):len(mirrors)], p.Mirrors...)
				}
			}
		}
	}
	return mirrors
}

// HasMirrors tells whether any shard may be on the web.
func (m *Manifest) HasMirrors() bool {
	for _, c := range m.Mixture {
		if len(c.Mirrors) > 0 {
			return true
		}
	}
	return len(m.Mirrors) > 0
}

// validateMixture makes sure that the components have all shards between them.
func (m *Manifest) validateMixture() error {
	if !m.Mixed() {
		return nil
	}
	if n := len(m.Mixture); n < 2 || n > MaxComponents {
		return fmt.Errorf("it mixes %d corpora: a mixture has 2 to %d", n, MaxComponents)
	}
	heldOut, train, seen := 0, 0, map[Digest]bool{}
	for _, c := range m.Mixture {
		if err := c.validate(); err != nil {
			return fmt.Errorf("component %.80q: %w", c.Name, err)
		}
		if seen[c.Digest] {
			return fmt.Errorf("component %.80q is there twice", c.Name)
		}
		seen[c.Digest] = true
		// A component cannot have more than all, so that the sums do not overflow.
		if c.HeldOut > len(m.HeldOut) || c.Shards > len(m.Shards) {
			return fmt.Errorf("component %.80q has more shards than the corpus", c.Name)
		}
		heldOut, train = heldOut+c.HeldOut, train+c.Shards
	}
	if heldOut != len(m.HeldOut) || train != len(m.Shards) {
		return fmt.Errorf("its components have %d shards and %d held out, the corpus has %d and %d", train, heldOut, len(m.Shards), len(m.HeldOut))
	}
	return nil
}

func (c Component) validate() error {
	for _, text := range []string{c.Name, c.Licence} {
		if err := checkText(text); err != nil {
			return err
		}
	}
	switch {
	case c.Weight < 1 || c.Weight > MaxWeight:
		return fmt.Errorf("its weight is %d: a weight is a whole number from 1 to %d", c.Weight, MaxWeight)
	case c.HeldOut < 1 || c.Shards < 1:
		return errors.New("it has no shards to train on, or none that are held out")
	}
	return checkMirrors(c.Mirrors)
}
