package main

import "atoll/gossip/p2p"

// rate is what a link carries, in bits per second, typed as p2p.ParseRate reads it.
type rate float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *rate) UnmarshalText(text []byte) error {
	bits, err := p2p.ParseRate(string(text))
	*r = rate(bits)
	return err
}

// bytesPerSecond of the link.
func (r rate) bytesPerSecond() float64 { return float64(r) / 8 }
