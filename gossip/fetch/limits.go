package fetch

import "atoll/gossip/peers"

// Pulling payloads.
const (
	// maxWants bounds the payloads being fetched or waiting for one: two
	// repair batches of 64 rounds with 32 deltas each.
	maxWants = 4096
	// maxWantsPerAuthor keeps one author from taking all of them: a repair
	// batch has at most one delta of an author per round.
	maxWantsPerAuthor = 256
	// maxStrangersWants bounds those of strangers' deltas that nobody vouches for who is known.
	maxStrangersWants = maxWants / peers.StrangersShare
	// MostOwed is how many of an author's payloads nobody may have had, without one of its that
	// came in between, before it is a failing source: what it announces comes last, and no round waits for it.
	MostOwed = 2
	// maxPayloadSources bounds the peers remembered as holding one payload; gossipsub
	// has a mesh degree of 6 to 12.
	maxPayloadSources = 8
	// MaxTries is how often each source is asked before giving up; repair
	// finds the payload again.
	MaxTries = 2
	// MaxPulls and MaxPullsPerPeer bound the requests in flight: enough to
	// cover parked ones, few enough that each gets a share of the link.
	MaxPulls        = 64
	MaxPullsPerPeer = 8
	// maxSmallPulls is the bound where all that a peer is asked for comes to at most
	// smallPullBytes, an eighth of a second at peers.FirstRate. Then round trips take the
	// time, and eight at once may bring less than a run makes. No more are parked for
	// one peer (MaxParkedPerPeer).
	maxSmallPulls  = 32
	smallPullBytes = 16 << 10
	// DownAheadMs is the time for which the capped downlink of a node has something asked for:
	// some round trips, and far less than a transfer may stand still. MinDownCalls are
	// asked for on any.
	DownAheadMs  = 5_000
	MinDownCalls = 2
	// maxDoubtful and maxDoubtfulPerPeer are the bounds for deltas of strangers, and of authors
	// that did not give what they announced: keys are free, and headers whose payload never
	// comes must leave room for the others.
	maxDoubtful        = MaxPulls / 4
	maxDoubtfulPerPeer = MaxPullsPerPeer / 4
	// maxFlights is how many peers may owe one payload: a second one is asked when the
	// first is overdue, and one of the two is in time.
	maxFlights = 2
	// wantTtlMs after the first request nobody is asked any more, whatever the sources do;
	// repair finds the payload again. A request in flight still ends in its own time.
	wantTtlMs = 180_000
	// wantAsks is for how many requests there is time in any case: tens of megabytes take minutes on a link of many.
	wantAsks = 2
	// storeTtlMs is how long the outer side may take from Fetched to Complete
	// before the payload is forgotten: a disk that stalls, not one that works.
	storeTtlMs = 120_000
	// maxLate is how often the time of a peer's answers is doubled: a link of peers.FirstRate
	// that is shared by 30.
	maxLate = 5
	// BusyRetryMs is how long a busy peer is left alone.
	BusyRetryMs = 500
)

// Relays of payloads.
const (
	// flowMs is the time over which the bytes that a node publishes are averaged: some
	// sweeps over the fragments on any link. Before FlowMinMs nothing is known.
	flowMs    = 60_000
	FlowMinMs = 5_000
	// uplinkFill is how much of an uplink payloads may take: runs are planned for three
	// quarters of all uplinks together, and heartbeats and repair need some.
	uplinkFill = 0.85
	// relayThinner is by how much an author's uplink has to be thinner than most before its
	// deltas are relayed. Measured rates of equal uplinks differ by a half: nodes that relay
	// for each other by such figures do not agree who does, and win nothing.
	relayThinner = 2
	// maxRelayed is the largest run with relays: twice the connections that the peer list
	// dials for, as all must be connected to all. In a larger one a header has come over
	// several hops, and its payload is asked for along these.
	maxRelayed = 2 * peers.DefaultTarget
	// claimFactor bounds what a peer may claim of its uplink, in medians of the run: from
	// a line at home to a data centre.
	claimFactor = 64
	// relayCredit is what a peer has as a relay. It loses relayFailed with a payload that
	// the author had to give in its place, and gains one with each that it gives. So one
	// that withholds a third of them is shunned, and a late one now and then is forgiven.
	relayCredit = 4
	relayFailed = 2
	// shunMinMs and shunMaxMs bound the doubling time for which a peer that has no credit
	// left is not relied on.
	shunMinMs = 30_000
	shunMaxMs = 3_600_000
	// maxRelayCalls bounds the requests that wait at one relay. They are beside
	// MaxPullsPerPeer, as most are for what it does not hold yet, and together they are
	// not more than it parks.
	maxRelayCalls = MaxParkedPerPeer - MaxPullsPerPeer
)

// MaxParkedPerPeer is how many requests of one peer may wait at a node for payloads that it does not hold yet, or for a slot:
// who asks has to know it.
const MaxParkedPerPeer = 32
