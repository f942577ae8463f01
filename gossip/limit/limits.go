package limit

import "atoll/gossip/peers"

// Messages that are passed on.
const (
	// HeartbeatsOfPeriod is how many heartbeats of an author may pass in the shortest period: as often as
	// one may follow another, of two processes with one key. HeartbeatsAtOnce may come together, as
	// after a stall on their way.
	HeartbeatsOfPeriod = 2 * peers.SoonParts
	HeartbeatsAtOnce   = 4 * HeartbeatsOfPeriod
	// LateHeartbeats is how many heartbeats a heartbeat may be behind the newest of its process, and still
	// pass: ways differ by a few periods.
	LateHeartbeats = 4 * peers.SoonParts
	// StrangersHeartbeats is how many heartbeats of strangers pass in the shortest period, all together:
	// of as many newcomers as count for the period, and as many again at once.
	StrangersHeartbeats = 2 * peers.LeastNewcomers
	// LeastStrangersHeartbeats is how many pass where that is more than their part of the uplink: one newcomer
	// sends as many.
	LeastStrangersHeartbeats = 1
	// HeadersOfRound is how many headers of an author may pass for each round: a second is
	// an equivocation proof, and no more are of use. As many rounds come at once as gossip brings.
	HeadersOfRound = 2
	// OldWindows is how many accept windows a header may be behind the rounds closed here, and
	// still pass: others are behind this node.
	OldWindows = 2
	// PaceTimes is how many times as many headers of an author pass as rounds close here: who
	// comes back catches up. leastPace is what counts as closing at least, one round of a
	// fragment in ten seconds; it is measured over PaceMs, and what has closed in less counts as well.
	PaceTimes = 4 * HeadersOfRound
	leastPace = 1e-4
	PaceMs    = 10_000
	// GuestsSlots is as many authors' headers as those of all guests may be. Rounds take some of each
	// tried: in a run with the usual 16 sampled learners it is 16 headers a round.
	GuestsSlots = peers.LeastNewcomers
	// UnknownPerSecond is how many messages of authors that nobody here knows are looked at of one peer: as
	// many as it may ask questions. A joiner hears many at once, and UnknownAtOnce of them may come.
	UnknownPerSecond = 16
	UnknownAtOnce    = 8 * UnknownPerSecond
	// MaxEquivocationPerAuthor bounds what gossip brings against one author: a few
	// proofs exclude it from all later rounds. Repair passes on what it lacks.
	MaxEquivocationPerAuthor = 64
)
