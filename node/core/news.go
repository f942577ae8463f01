package core

import (
	"atoll/gossip"
	"atoll/optimizer/rounds"
)

// News reports whether an effect only tells something: an executor may
// ignore it. One that is no news and that nobody executes is a bug, and not
// to be passed over: the promises rest on all of them.
func News(e Effect) bool {
	switch e.(type) {
	case gossip.Offer, gossip.Event, gossip.BaseMismatch, gossip.StateDiffers, gossip.Misbehaved, rounds.Closed, Refused, Verdict:
		return true
	}
	return false
}
