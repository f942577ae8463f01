package gossip

import (
	"atoll/gossip/limit"
	"atoll/gossip/peers"
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
	// defaultTargetPeers is the number of connections that the peer list dials
	// for: twice gossipsub's mesh degree, so that losing some leaves a mesh.
	defaultTargetPeers = 12
)

// Headers and equivocation proofs.
const (
	// maxSeen bounds the ring of headers met: ten sweeps of 24 fragments with
	// 16 deltas each, about 2 MiB. What falls out is known to the Chain.
	maxSeen = 4096
	// maxEquivocation bounds the equivocation proofs remembered; what falls out may be handed
	// up twice, which does no harm.
	maxEquivocation = 4096
)

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
	// maxTries is how often each source is asked before giving up; repair
	// finds the payload again.
	maxTries = 2
	// maxPulls and maxPullsPerPeer bound the requests in flight: enough to
	// cover parked ones, few enough that each gets a share of the link.
	maxPulls        = 64
	maxPullsPerPeer = 8
	// maxSmallPulls is the bound where all that a peer is asked for comes to at most
	// smallPullBytes, an eighth of a second at firstRate. Then round trips take the
	// time, and eight at once may bring less than a run makes. No more are parked for
	// one peer (maxParkedPerPeer).
	maxSmallPulls  = 32
	smallPullBytes = 16 << 10
	// downAheadMs is the time for which the capped downlink of a node has something asked for:
	// some round trips, and far less than a transfer may stand still. minDownCalls are
	// asked for on any.
	downAheadMs  = 5_000
	minDownCalls = 2
	// maxSpeculative and maxSpeculativePerPeer are the bounds for deltas of strangers, and of authors
	// that did not give what they announced: keys are free, and headers whose payload never
	// comes must leave room for the others.
	maxSpeculative        = maxPulls / 4
	maxSpeculativePerPeer = maxPullsPerPeer / 4
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
	// maxLate is how often the time of a peer's answers is doubled: a link of firstRate
	// that is shared by 30.
	maxLate = 5
	// busyRetryMs is how long a busy peer is left alone.
	busyRetryMs = 500
)

// Relays of payloads.
const (
	// flowMs is the time over which the bytes that a node publishes are averaged: some
	// sweeps over the fragments on any link. Before flowMinMs nothing is known.
	flowMs    = 60_000
	flowMinMs = 5_000
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
	maxRelayed = 2 * defaultTargetPeers
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
	// maxPullsPerPeer, as most are for what it does not hold yet, and together they are
	// not more than it parks.
	maxRelayCalls = maxParkedPerPeer - maxPullsPerPeer
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
	repairAhead = maxPullsPerPeer
	// maxRoundHeaders bounds the headers of one round in an answer: half of
	// what an answer holds, so that a cut answer can be recognised.
	maxRoundHeaders = wire.MaxHeaders / 2
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
	// ownToldMs is the least time between two such answers to one peer: with 100,000
	// headers in the window one takes milliseconds of the loop. A node whose disk was
	// lost asks once in its life.
	ownToldMs = 30_000
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
	// minChunkAhead and maxChunkAhead bound the chunks asked of one snapshot source, by its rate:
	// on any link one that leaves and one behind it, on a fast link 2 MiB. So its link is
	// never idle for a round trip (100 Mbit/s x 80 ms are four chunks). chunkAheadMs is
	// the time that they cover. Where a chunk takes longer than chunkAloneMs, as at 0.5
	// Mbit/s, it is asked for alone: a round trip is a fortieth of it, and what waits behind
	// it may wait in vain.
	minChunkAhead = 2
	maxChunkAhead = 8
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
	// what snapshotAsksMs allows, and renewRounds how many rounds the source must have closed since.
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
	// diskRetryMs is the pause after the own disk could not take something. For
	// diskSlowMs after that one chunk or payload is asked for at a time, or more once
	// some were kept: a person has to make room first.
	diskRetryMs = 5_000
	diskSlowMs  = 30_000
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

// Serving.
const (
	// aheadMs is how much of a busy uplink's time the answers may take that leave at once:
	// two round trips to the other side of the world. With less the link is idle between
	// two answers, with more a payload waits for others that are no more urgent.
	aheadMs = 500
	// openRounds is how many rounds behind the last closed one a payload is as urgent as
	// those of an open round: it makes the next fold, and is late but not lost.
	openRounds = 2
	// repairWaitMs is how long a payload of an old round waits for those that are more
	// urgent. It is less than an asker has it wait at least. Without it nothing would be
	// repaired while uplinks are full, and chains would part.
	repairWaitMs = 2_000
	// ownCopies is how many copies of an own delta a thin uplink gives as soon as it can:
	// one to the relay, and one more as not all may agree who that is, and it may fail.
	ownCopies = 2
	// maxGiven bounds the peers remembered as given one payload: as many as a node is
	// connected to in a mesh.
	maxGiven = 16
	// maxParked and maxParkedPerPeer bound the payload requests that wait for
	// the payload or for a slot.
	maxParked        = 1024
	maxParkedPerPeer = 32
	// maxServing and maxServingPerPeer bound the bytes of bulk answers on
	// their way: what a slow reader may make a node hold in memory. One answer
	// may be larger if it is alone.
	maxServing        = 64 << 20
	maxServingPerPeer = 16 << 20
	// servingFloor is what a small answer counts at least, for its stream.
	servingFloor = 4 << 10
	// servingTtlMs frees the slot of an answer for which the caller never
	// said Replied.
	servingTtlMs = 120_000 // and longer for an answer that takes longer at firstRate
	// maxAsksPerSecond bounds the requests that cost hashing (rounds, headers,
	// peer list, manifest) per peer: a repair needs a few a second.
	maxAsksPerSecond = limit.UnknownPerSecond
	// maxSnapshotAsks in snapshotAsksMs bounds the requests for a snapshot per peer: a joiner asks for the
	// one whose chunks it has, then for another, and every renewMs for newer tips.
	maxSnapshotAsks = 4
	snapshotAsksMs  = 10_000
	// maxSnapshotsMade bounds the manifests, made or waiting, of fragments and rounds that others
	// chose. Each may fold some rounds of all fragments again, for a few seconds,
	// and an asker gives up after effect.CallMs.
	maxSnapshotsMade = 4
	// maxChunkAskers bounds the peers that may wait for chunks: each gets a
	// share of the link that is worth having, the others find another source.
	maxChunkAskers = 8
	// chunkTurnMs is how long an asker keeps its slot when others want it. It is
	// enough for some chunks on a slow link, and less than progressMs, after which
	// waiting askers look for another source.
	chunkTurnMs = 20_000
	// maxChunksAway bounds the chunks that leave at once to all askers: four
	// connections fill a link that one far connection does not. maxChunksBeside
	// is how many may leave beside payloads of the run: n payloads on their way
	// get n/(n+1) of the link, however many nodes join.
	maxChunksAway   = 4
	maxChunksBeside = 1
	// chunkParts is how many parts of a full uplink payloads have beside one of chunks, while
	// some of them wait: a joiner gets in, and rounds hardly feel it.
	chunkParts = 8
	// chunkSlotMs is how long a chunk counts as leaving: 200 kbit/s. An asker
	// that reads more slowly keeps nobody else waiting.
	chunkSlotMs = 10_000
	// chunkWaitMs is how long a request may wait for its turn.
	chunkWaitMs = 60_000
)
