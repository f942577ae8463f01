package peers

// Heartbeats and the peer list.
const (
	// DefaultTarget is the number of connections that the peer list dials
	// for: twice gossipsub's mesh degree, so that losing some leaves a mesh.
	DefaultTarget = 12
	// HeartbeatMsPerPeer lengthens the period with the run, so that a node receives
	// at most 50 heartbeats a second however many peers there are.
	HeartbeatMsPerPeer = 20
	// LeastNewcomers is how many strangers that came after the run had begun count for the
	// period in any case. Beyond it no more do than there are others: a run may double
	// before the first of them is folded, and a crowd of keys slows nobody down.
	LeastNewcomers = 16
	// HeartbeatWays is how many ways to other nodes a period has at least: what a heartbeat says
	// is as old as its way. With four, repair began late: it waits for a heartbeat or two.
	HeartbeatWays = 2
	// HeartbeatShare is the part of a node's uplink that its own heartbeats may take. A heartbeat leaves
	// in so many copies at most: gossipsub has a mesh of 6 to 12 peers.
	HeartbeatShare  = 0.01
	HeartbeatCopies = 8
	// SoonParts is the part of a period after which a heartbeat may follow another at once.
	SoonParts = 4
	// QuietHeartbeats is how many of its own periods without a byte make a peer quiet: no
	// round waits for it. One or two heartbeats may be lost or late.
	QuietHeartbeats = 3
	// backMs is how long after its last sign of life a peer without a connection is waited for
	// at the end, where addresses change: the connections that a new address made useless
	// are found dead and made anew in half of it.
	backMs = 30_000
	// SilentHeartbeats is how many of its own periods without a byte make a peer silent:
	// gossip may lose a few heartbeats in a row under load, not ten.
	SilentHeartbeats = 10
	// WayWindowMs is how long the smallest way counts, and for as long again at most:
	// in small runs a peer is asked for its peer list every few minutes. Round trips of
	// answers above wayMaxBytes measure the link if nobody saw their first byte.
	WayWindowMs = 300_000
	wayMaxBytes = 4 << 10
	// DeafHeartbeats is how many heartbeat periods a connected peer may be without a heartbeat
	// before it is connected anew. It allows for a few lost heartbeats, and the peer is
	// heard again before it would count as silent. The pause until the next time
	// doubles up to ReconnectPauseMaxMs.
	DeafHeartbeats      = 4
	ReconnectPauseMaxMs = 600_000
	// HeartbeatsToRepair unequal heartbeats in a row start a repair: one may only have
	// crossed a closing round.
	HeartbeatsToRepair = 2
	// MaxPeers bounds the table of peers, connected or only heard of. Four
	// times the largest run simulated; an entry takes a few KiB.
	MaxPeers = 4096
	// MaxFaults drops the connection to a peer: a version apart or a damaged
	// disk shows once or twice, more is a waste of everybody's time.
	MaxFaults = 8
	// PeerListPeriodMs is how often a node below its target asks for the peer list.
	PeerListPeriodMs = 60_000
	// PeerListAgainMs is the least time between two peer list requests to one peer:
	// records change every few minutes at most.
	PeerListAgainMs = 10_000
	// mostChosen connections, and one in chosenShare of those where fewer are dialled for, are
	// with peers that the peer list dialled, or that are known: enough to hear of the run whoever
	// else comes.
	mostChosen  = 4
	chosenShare = 3
	// DialPeriodMs and MaxDials bound attempts: four every five seconds reach
	// any target within a minute without a burst that looks like a scan.
	DialPeriodMs = 5_000
	MaxDials     = 4
	// redialMs is the pause after the loss of a peer where addresses change: others are
	// known, and it may be reached another way.
	redialMs = 1_000
	// DialBackoffMinMs doubles per failed attempt up to DialBackoffMaxMs: a
	// restarted peer is found within seconds, a dead address costs little.
	DialBackoffMinMs = 5_000
	DialBackoffMaxMs = 600_000
	// dialBackoffLostMs bounds the pause for a peer that was heard within
	// lostForMs: a partition of an hour merges within seconds.
	dialBackoffLostMs = 5_000
	lostForMs         = 3_600_000
)

// Hints of where peers are.
const (
	// MaxHints bounds the hints that wait: more peers than a node connects to. Anybody
	// on a network can make them up.
	MaxHints = 32
	// maxHintAddrs bounds the addresses of one: a few interfaces with two transports, or
	// slots at two relays.
	maxHintAddrs = 8
	// MaxHintTries is how often a hint is dialled before it is forgotten. One that is true
	// is heard again.
	MaxHintTries = 3
	// DiscoverFirstMs is how long a node that has nobody waits before it looks in the DHT of all
	// runs: first the addresses that it has may answer. The pause doubles up to discoverMaxMs.
	DiscoverFirstMs = 3_000
	discoverMaxMs   = 300_000
	// discoverFewMs and discoverManyMs are the pauses of one that has some peers, fewer or not fewer
	// than WantNeighbours. Two parts of a run find each other in that time, and a
	// search is some kilobytes.
	discoverFewMs  = 300_000
	discoverManyMs = 1_800_000
	WantNeighbours = 4
)

// Slots at relays.
const (
	// wantSlots is the number of relays of a node that others do not reach by themselves.
	wantSlots = 2
	// wantRelays is the number of relays among a node's neighbours beyond which others are dialled
	// first: twice its slots. Those that everybody reaches are few, and must not become
	// neighbours of all.
	wantRelays = 2 * wantSlots
	// SlotPauseMinMs doubles with each refusal up to slotPauseMaxMs: a relay that has just
	// begun, or is full, may have room later.
	SlotPauseMinMs = 5_000
	slotPauseMaxMs = 300_000
)

// Rates.
const (
	// FirstRate is the rate in bytes per ms (1 Mbit/s) assumed of a peer that
	// sent nothing yet: a slow link must not fail its first pull.
	FirstRate = 125.0
	// rateDecay is the weight of a slower sample in the rate. Faster ones count at once:
	// an answer that shared the link with others measures its share, not the link.
	rateDecay = 0.125
	// RateMinBytes is the smallest answer that says something about a rate: a smaller
	// one may come in one piece.
	RateMinBytes = 64 << 10
	// RateSlack is how many times the expected duration a transfer may take.
	RateSlack = 4
	// DeadlineMinMs and DeadlineMaxMs bound the time in which an answer may travel: a round
	// trip around the world with a retransmission; 16 MiB at 1 Mbit/s, four times over. A
	// transfer that stands still ends long before, in p2p.
	DeadlineMinMs = 3_000
	DeadlineMaxMs = 600_000
)
