package serve

import (
	"atoll/gossip/limit"
	"atoll/gossip/wire"
)

// Serving.
const (
	// AheadMs is how much of a busy uplink's time the answers may take that leave at once:
	// two round trips to the other side of the world. With less the link is idle between
	// two answers, with more a payload waits for others that are no more urgent.
	AheadMs = 500
	// OpenRounds is how many rounds behind the last closed one a payload is as urgent as
	// those of an open round: it makes the next fold, and is late but not lost.
	OpenRounds = 2
	// RepairWaitMs is how long a payload of an old round waits for those that are more
	// urgent. It is less than an asker has it wait at least. Without it nothing would be
	// repaired while uplinks are full, and chains would part.
	RepairWaitMs = 2_000
	// OwnCopies is how many copies of an own delta a thin uplink gives as soon as it can:
	// one to the relay, and one more as not all may agree who that is, and it may fail.
	OwnCopies = 2
	// MaxParked bounds the payload requests that wait for the payload or for a slot, beside
	// fetch.MaxParkedPerPeer.
	MaxParked = 1024
	// MaxServing and MaxServingPerPeer bound the bytes of bulk answers on
	// their way: what a slow reader may make a node hold in memory. One answer
	// may be larger if it is alone.
	MaxServing        = 64 << 20
	MaxServingPerPeer = 16 << 20
	// ServingFloor is what a small answer counts at least, for its stream.
	ServingFloor = 4 << 10
	// ServingTtlMs frees the slot of an answer for which the caller never
	// said Replied.
	ServingTtlMs = 120_000 // and longer for an answer that takes longer at peers.FirstRate
	// MaxAsksPerSecond bounds the requests that cost hashing (rounds, headers,
	// peer list, manifest) per peer: a repair needs a few a second.
	MaxAsksPerSecond = limit.UnknownPerSecond
	// MaxSnapshotAsks in SnapshotAsksMs bounds the requests for a snapshot per peer: a joiner asks for the
	// one whose chunks it has, then for another, and now and then for newer tips.
	MaxSnapshotAsks = 4
	SnapshotAsksMs  = 10_000
	// MaxSnapshotsMade bounds the manifests, made or waiting, of fragments and rounds that others
	// chose. Each may fold some rounds of all fragments again, for a few seconds,
	// and an asker gives up after effect.CallMs.
	MaxSnapshotsMade = 4
	// MaxChunkAskers bounds the peers that may wait for chunks: each gets a
	// share of the link that is worth having, the others find another source.
	MaxChunkAskers = 8
	// ChunkTurnMs is how long an asker keeps its slot when others want it. It is
	// enough for some chunks on a slow link, and less than the time after which
	// waiting askers look for another source.
	ChunkTurnMs = 20_000
	// MaxChunksAway bounds the chunks that leave at once to all askers: four
	// connections fill a link that one far connection does not. MaxChunksBeside
	// is how many may leave beside payloads of the run: n payloads on their way
	// get n/(n+1) of the link, however many nodes join.
	MaxChunksAway   = 4
	MaxChunksBeside = 1
	// ChunkParts is how many parts of a full uplink payloads have beside one of chunks, while
	// some of them wait: a joiner gets in, and rounds hardly feel it.
	ChunkParts = 8
	// ChunkSlotMs is how long a chunk counts as leaving: 200 kbit/s. An asker
	// that reads more slowly keeps nobody else waiting.
	ChunkSlotMs = 10_000
	// ChunkWaitMs is how long a request may wait for its turn.
	ChunkWaitMs = 60_000
	// OwnToldMs is the least time between two such answers to one peer: with 100,000
	// headers in the window one takes milliseconds of the loop. A node whose disk was
	// lost asks once in its life.
	OwnToldMs = 30_000
	// MaxRoundHeaders bounds the headers of one round in an answer: half of
	// what an answer holds, so that a cut answer can be recognised.
	MaxRoundHeaders = wire.MaxHeaders / 2
	// MaxChunkAhead is how many chunks one asker may have asked for beyond the one that leaves: 2 MiB.
	MaxChunkAhead = 8
)
