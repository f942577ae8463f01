package core

import (
	"math"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// linksMs is the time between two looks at what heartbeats say of links: no heartbeats are more
// frequent. One look takes less than a microsecond for each peer. With linksMsPerPeer, for which
// heartbeats wait too, looks take the same small share of time however many peers there are. Keys
// cost nothing: however many somebody invents, a look comes after linksMostMs.
const (
	linksMs        = 500
	linksMsPerPeer = 20
	linksMostMs    = 10_000
)

// claimMost is how many times the median of all a peer's claim counts for at most. Machines
// differ by more, but one that claims a thousand times as much must not have the others
// send a thousand times as much, or publish a thousand times as seldom.
const claimMost = 4

// links are what heartbeats say of the nodes' links and speeds.
type links struct {
	steps   []float64 // per second, of those that train
	uploads []float64 // bytes per second, of uplinks that were seen full
	least   []float64 // the same of those that carry more than they were ever asked to
	others  int       // nodes that take deltas
	plans   map[outer.Author]uint32
}

// updateLinks tells the rounds what heartbeats say of links and speeds.
func (m *Machine) updateLinks(now Time) {
	if now-m.cache.linksAt < linksEvery(m.gossip.Peers().Known()) {
		return
	}
	m.cache.linksAt = now
	l := m.links()
	m.rounds.SetPlans(l.plans)
	m.cache.sweepMs = l.sweepMs(m.rounds.SweepBytes())
	m.rounds.SetLinks(now, rounds.Links{
		Steps: sumCapped(l.steps), Upload: l.upload(), Copies: l.others,
		OwnSteps: m.ownSteps(), OwnUpload: m.ownUpload(),
	})
}

// linksEvery is the time between two looks with so many peers known.
func linksEvery(peers int) Time {
	return min(max(linksMs, linksMsPerPeer*Time(peers)), linksMostMs)
}

// links sums up the heartbeats of others, and what this node knows of itself.
func (m *Machine) links() links {
	l := links{plans: map[outer.Author]uint32{}}
	if m.end.may {
		l.steps = append(l.steps, m.ownSteps())
	}
	l.carries(m.learning.upload, m.learning.full)
	m.gossip.Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		if b.State == wire.Leaving || b.Paused {
			return
		}
		l.others++
		l.carries(b.Upload, b.Full)
		if b.State == wire.Training && b.Tokens > 0 {
			l.steps = append(l.steps, stepsPerSecond(b.TokensPerSecond, b.Steps, b.Tokens))
		}
		if b.Plan > 0 {
			l.plans[outer.Author(id)] = b.Plan
		}
	})
	return l
}

// sweepMs is what so many bytes take from the node with the thinnest uplink to all others; 0
// where no uplink is known. One that claims next to nothing counts as a quarter of the median.
func (l *links) sweepMs(bytes float64) Time {
	if len(l.uploads) == 0 {
		return 0
	}
	thinnest := max(slices.Min(l.uploads), l.usual()/claimMost)
	return Time(min(1000*bytes*float64(l.others)/thinnest, mostSweepMs))
}

// mostSweepMs bounds what the links of others are believed to need: a request for a payload
// is broken off by then.
const mostSweepMs = 600_000

// ownSteps are the steps per second of the own learner.
func (m *Machine) ownSteps() float64 {
	return stepsPerSecond(m.learning.perSecond, m.learning.steps, m.learning.tokens)
}

// stepsPerSecond is the speed of a learner in steps of its usual size. It is 0 before the
// first, and where a peer claims more than a float64 holds.
func stepsPerSecond(tokensPerSecond float64, steps, tokens uint64) float64 {
	if s := tokensPerSecond * float64(steps) / float64(tokens); s <= math.MaxFloat64 { // false for NaN
		return s
	}
	return 0
}

// ownUpload is what the own uplink carries, 0 while that is not known.
func (m *Machine) ownUpload() float64 {
	if !m.learning.full {
		return 0
	}
	return m.learning.upload
}

// carries counts a node's uplink, and whether that is all that it carries.
func (l *links) carries(upload float64, full bool) {
	if full && upload > 0 {
		l.uploads = append(l.uploads, upload)
	} else {
		l.least = append(l.least, upload)
	}
}

// upload is what all uplinks carry together, 0 if none was ever full: nothing has to be planned
// for. One that was not is as the others, or better if it has carried more.
//
// A claim counts as some times the usual at most. Where most links were never full it counts as a
// part of that at least: then one claim must not speak for all.
func (l *links) upload() (sum float64) {
	if len(l.uploads) == 0 {
		return 0
	}
	usual, least := l.usual(), 0.0
	if len(l.least) > len(l.uploads) {
		least = usual / claimMost
	}
	within := func(claim float64) float64 { return min(max(claim, least), claimMost*usual) }
	for _, upload := range l.uploads {
		sum += within(upload)
	}
	mean := sum / float64(len(l.uploads))
	for _, least := range l.least {
		sum += within(max(mean, least))
	}
	return sum
}

// usual is the lower median of what links carry, as far as that was seen.
func (l *links) usual() float64 {
	all := slices.Clone(l.uploads)
	for _, least := range l.least {
		if least > 0 {
			all = append(all, least)
		}
	}
	slices.Sort(all)
	return middle(all)
}

// sumCapped adds claims, each at most claimMost times the lower median. It sorts them.
func sumCapped(claims []float64) (sum float64) {
	if len(claims) == 0 {
		return 0
	}
	slices.Sort(claims)
	most := claimMost * middle(claims)
	for _, c := range claims {
		sum += min(c, most)
	}
	return sum
}

// middle is the median of sorted values, the smaller one of two.
func middle(sorted []float64) float64 { return sorted[(len(sorted)-1)/2] }
