package gossip

import (
	"atoll/gossip/fetch"
	"atoll/gossip/wire"
)

// Heartbeats and the peer list.
const (
	// defaultHeartbeatMinMs is the shortest heartbeat period: half a second shows a dead peer
	// within five and costs a thousand bytes a second for each peer.
	defaultHeartbeatMinMs = 500
	// agreeHeartbeats is how many of the longest period all have to agree at the end: in one each
	// sends another heartbeat. Who stopped and does not lag has nothing left to publish or to fold.
	agreeHeartbeats = 1
)

// Repair.
const (
	// maxRepairs bounds the repairs at a time: they mostly fetch the same. Those with strangers,
	// and with peers that did not answer, give way to others.
	maxRepairs = 3
	// repairBatch is the number of rounds whose headers are fetched at once. It bounds
	// memory, not progress. The next batch follows when at most repairAhead payloads are
	// still on their way: as many as a peer is asked for at once.
	repairBatch = 64
	repairAhead = fetch.MaxPullsPerPeer
	// spentRepairs is how many repairs in a row must find that nobody has any more what a
	// peer folded. Then this node gives up its chain for the peer's. A single one may
	// have failed because a connection broke.
	spentRepairs = 2
	// repairBackoffMaxMs bounds the doubling pause between fruitless repairs
	// with one peer.
	repairBackoffMaxMs = 60_000
	// The pause after a repair that brought deltas is a heartbeat period divided by
	// fruitfulParts. Each delta is work that a peer has done, so nobody can keep a node
	// busy for nothing.
	fruitfulParts = 8
	// repairTtlMs ends a repair that does not get on.
	repairTtlMs = 600_000
	// auditPauseMs is the least time between two audits, and the first pause for one peer.
	// For that peer, and for all strangers together, it doubles up to auditPauseMaxMs. An
	// audit may fold all rounds of the union window again, and a peer that lies can ask for
	// it.
	auditPauseMs    = 60_000
	auditPauseMaxMs = 3_600_000
	// ownRetryMs is the pause before a peer is asked again for own deltas that it
	// could not tell: it is joining itself, or busy.
	ownRetryMs = 1_000
	// historyBatch is the number of rounds whose headers are asked for at a time,
	// once a heartbeat period, where a snapshot was taken. With eight deltas a round
	// these are 64 KiB and 20 ms of signatures. A window of 256 rounds of 24
	// fragments takes minutes and nobody notices. While payloads are on their way it
	// is once in historyHeartbeats heartbeat periods.
	historyBatch      = 32
	historyHeartbeats = 5
	// maxFruitless answers in a row end it for historyRetryMs: nobody who is there
	// now has the headers.
	maxFruitless   = 8
	historyRetryMs = 600_000
	// minAttesters is the number of live peers from which their majority
	// counts; with fewer, one peer's claim has to do.
	minAttesters = 3
)

// Snapshots.
const (
	// maxChunkCalls bounds the chunks asked for at once: 8 MiB, which is what
	// they take in memory.
	maxChunkCalls = 32
	// minChunkAhead and serve.MaxChunkAhead bound the chunks asked of one snapshot source, by its rate:
	// on any link one that leaves and one behind it, on a fast link 2 MiB. So its link is
	// never idle for a round trip (100 Mbit/s x 80 ms are four chunks). chunkAheadMs is
	// the time that they cover. Where a chunk takes longer than chunkAloneMs, as at 0.5
	// Mbit/s, it is asked for alone: a round trip is a fortieth of it, and what waits behind
	// it may wait in vain.
	minChunkAhead = 2
	chunkAheadMs  = 300
	chunkAloneMs  = 4_000
	// maxSnapshotSources is how many peers give the chunks of one snapshot: four links
	// fill most others, and each source holds its snapshot in memory meanwhile.
	maxSnapshotSources = 4
	// maxAttesters is how many peers are asked what they know of a source's
	// rounds: a majority of 16 is as good as one of a thousand.
	maxAttesters = 16
	// snapshotBytesMs is how many bytes a source hashes for a manifest in a millisecond, at least: a slow core
	// with a slow disk does. mostSnapshotMs is less than the time that p2p gives an answer to begin.
	snapshotBytesMs = 200_000
	mostSnapshotMs  = 2*wire.MaxWaitMs - 10_000
	// attestMs is how long their answers are awaited.
	attestMs = 5_000
	// renewParts is after which part of a transfer a joiner asks for newer tips of the fragments not begun.
	// With eight a tip is too old by a sixteenth of the transfer on average, and each source
	// hashes its snapshot four or five times. renewMs is the least time between two such requests, within
	// what serve.SnapshotAsksMs allows, and renewRounds how many rounds the source must have closed since.
	renewParts  = 8
	renewMs     = 4_000
	renewRounds = 2
	// gatherHeartbeats is how many heartbeat periods a joiner without a peer of its link
	// waits for others that could attest what the first one shows.
	gatherHeartbeats = 2
	// maxDisputes is how many manifests a majority may speak against. After
	// that the joiner takes the one that most peers show. Honest peers may
	// differ for a while, and no liar must keep a joiner out for good.
	maxDisputes = 8
	// anotherSourceMs is how long a source may take to name its snapshot before another is asked
	// as well. To list the chunks of a large one takes a second or two.
	anotherSourceMs = 4_000
	// snapshotRetryMs is the pause before another source is asked, triedMs how
	// long one that was asked comes after all others.
	snapshotRetryMs = 1_000
	triedMs         = 60_000
	// strangerMs is for how long a peer that is a mere key can keep a joiner from beginning the run, giving nothing: keys are free.
	strangerMs = 600_000
	// maxChunkTries is how often a chunk may fail before the manifest is taken
	// anew: its sources are gone or have moved on.
	maxChunkTries = 16
	// chunkCallMs is the least time for one chunk: longer than a request may wait for
	// its turn at a source that has many askers. Over a thin link it has more, by its rate.
	chunkCallMs = 90_000
	// stallMs is how long a source that owes chunks may be still before an idle
	// one is asked for them as well. A slow link gets more time, by its rate, but no more
	// than mostChunkMs: a chunk at 0.1 Mbit/s, with four others. Who drips bytes holds one
	// chunk for no longer.
	stallMs     = 5_000
	mostChunkMs = 120_000
	// progressMs is how long at least nothing may come from anybody before the manifest
	// is taken anew, from another source.
	progressMs = 30_000
)

// Blobs. What chunks of a snapshot have is not repeated here: parts share their slots.
const (
	// holdingsMs is the time between two looks at what peers have of a blob. While many fetch
	// the same a part spreads a look later, and a look costs some hundred bytes.
	holdingsMs = 500
	// maxHolders is how many peers are asked each time: more than a peer list dials for, so that
	// in small runs all are.
	maxHolders = 16
	// deafMs is how long a peer is not asked that refused to say what it has.
	deafMs = 600_000
	// maxChoice is among how many parts a server may choose. With few it may have given all of
	// them already, with many the asker cannot ask others for them meanwhile.
	maxChoice = 8
	// spreadMs is for how long a full uplink gives no second copy of a part: whoever has it can
	// give it to the others by then.
	spreadMs = 5_000
	// maxGivenBlobs bounds the blobs of which it is remembered what was given.
	maxGivenBlobs = 4096
	// partStallMs is how long a peer that owes parts may be still. It may have as many askers as
	// slots, and each gets a part in turn: 16 s on an uplink of 1 Mbit/s.
	partStallMs = 20_000
)
