package peers

import "atoll/gossip/wire"

// SelfState is what the next heartbeat says about this node.
type SelfState struct {
	State           wire.State
	Steps, Tokens   uint64
	Unpublished     []uint64 // tokens per fragment that are in no delta yet
	TokensPerSecond float64
	Bits            float32 // last live bits per byte, 0 if there is none
	Capability      uint64  // sequence number of the own capability record
	Paused          bool    // takes no steps for now, by its owner's wish
	Upload          float64 // the most bytes per second that the own uplink was seen to carry recently, 0 if unknown
	Full            bool    // it carries no more than that
	Plan            uint32  // inner steps planned for each delta, 0 for the run's H
	Unfinished      bool    // something is left to publish or to fold
	Unreached       bool    // its link names peers, and nothing of anybody has reached it yet
}

// Lag is how many rounds behind closed the digests of a heartbeat are: deltas of
// the last two rounds are still on their way while the run trains, and until
// the last ones are folded.
func (s SelfState) Lag() uint8 {
	if s.State == wire.Stopped && !s.Unfinished || s.State == wire.Leaving {
		return 0
	}
	return 2
}

// Watches reports whether this is an observer that has nothing left to fold.
func (s SelfState) Watches() bool { return s.State == wire.Observing && !s.Unfinished }
