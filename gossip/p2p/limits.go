package p2p

import (
	"time"

	"atoll/gossip/p2p/bulk"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire"
)

// Limits on connections and the handshake.
const (
	// connsLow and connsHigh: above connsHigh connections the connection
	// manager closes the least valued until connsLow are left. Gossip needs
	// about ten peers and repair any one; a hundred leave room for joiners.
	connsLow  = 96
	connsHigh = 128
	// connsGrace protects a new connection from being closed for want of value:
	// longer than a handshake and the first heartbeats take.
	connsGrace = time.Minute

	// connsRate and connsBurst bound the connections that one IP address opens in a second. As
	// many nodes as may be connected from there each dial by TCP and QUIC every five
	// seconds. A handshake takes about a millisecond.
	connsRate  = 2 * guard.ConnsAddress / 5
	connsBurst = 4 * guard.ConnsAddress

	// dialTimeout bounds one address; a full TCP and noise handshake takes four
	// round trips, so 15 s is generous on any link worth training over.
	dialTimeout = 15 * time.Second
	// punchTimeout bounds hole punching: a few tries over a relay, some seconds
	// each.
	punchTimeout = 30 * time.Second
	// helloTimeout bounds the handshake from connection to verdict. A peer that
	// says nothing holds a connection no longer than that.
	helloTimeout = 10 * time.Second
	// probeTimeout is the time of a connected peer for the handshake of a probe:
	// several round trips on a busy link, and far less than a transport needs to
	// notice a dead connection.
	probeTimeout = 5 * time.Second
	// verdictTimeout bounds the wait for the verdict of a peer that we refuse:
	// it only serves to tell the peer why, before the connection is closed.
	verdictTimeout = 2 * time.Second
	// maxHello bounds the frame with a signed record.
	maxHello = wire.MaxRecord
	// maxVerdict bounds the frame that tells the peer why it is refused: a line
	// of text for a person.
	maxVerdict = 1024
	// helloStreams bounds handshake streams of one peer at once: one for each
	// connection and one for a renewal.
	helloStreams = guard.ConnsPeer + 1

	// refusedMemory is how long a refused peer is not dialled again: long
	// enough to stop loops, short enough for a person who corrects a mistake.
	refusedMemory = time.Minute
	// droppedMemory is how long a peer that was dropped stays away.
	droppedMemory = 10 * time.Minute
	// reconnectPause is the least time between two closings of connections because
	// gossip lost its stream to the peer. A peer that ends the stream each time
	// makes nobody dial in a loop.
	reconnectPause = time.Second
	// settlePause lies between closing and dialling anew, so that gossip on both
	// sides has noticed the end of what was: a few scheduling delays of a machine
	// that trains.
	settlePause = 200 * time.Millisecond
	// regainPause is how long gossip on the internet may take to open a stream again: a few
	// round trips, and a hold by its own back-off.
	regainPause = time.Second
	// regainTries is how often its streams are mended before the connection is given up. That
	// takes ten seconds: the connection may be the only one that can be had.
	regainTries = 8
	// refreshTime is what gossip gets to flow again before a request to connect anew is
	// believed: all that mending its streams takes, or a peer that starts on a busy machine.
	refreshTime = regainTries * regainPause * 3 / 2
	// refreshPause is the time for which a second request to connect anew is meant so: the
	// streams of gossip began anew already, and nothing came of it.
	refreshPause = time.Minute
	// libraryLines bounds what libp2p logs in a minute, errors and the rest each: enough to see what is wrong, and
	// some megabytes a day where a stranger makes it warn all the time.
	libraryLines = 10
)

// Limits on being reached.
const (
	// reachBuffer is the number of libp2p's notices of addresses that may wait. Each says
	// that something changed; what it is now is asked then.
	reachBuffer = 64
	// lookAround is how often a node looks for addresses that its interfaces got or lost.
	lookAround = 2 * time.Second
	// maxMet bounds the peers that are remembered until one of them proved that this
	// node is public.
	maxMet = 1024
	// reservationTTL is how long a relay keeps a slot that nobody asks for again.
	reservationTTL = time.Hour
	// reservePause is the least time between two requests for one slot, whatever the
	// relay says of its end.
	reservePause = time.Minute
	// maxReservations is the number of slots of a relay: one for each connection. Guests have half of them (see guard.Slots).
	maxReservations = connsHigh
	// maxCircuits bounds the relayed connections of one peer: more neighbours than a
	// node dials for, in both directions. They all come from the relay's address, and no more may from one: so
	// strangers that a node meets through a relay have room for their streams beside each other (guard.StrangersAddress).
	maxCircuits = guard.ConnsAddress
	// relayBuffer is read at once from a relayed connection: a segment of bulk.
	relayBuffer = bulk.Segment
	// maxCircuitAddrs is the number of a relay's addresses that a node tells: TCP and QUIC.
	maxCircuitAddrs = 2
	// defaultRelayRate is what a node passes on for others unless told otherwise: 100
	// Mbit/s, the uplink of a small server.
	defaultRelayRate = 12_500_000
	// punchDial bounds an attempt at a direct connection: a few retransmissions.
	punchDial = 5 * time.Second
	// punchFirst is the pause before an attempt to punch a hole is repeated; it doubles
	// up to punchLongest: routers do not change their ways, but machines move.
	punchFirst   = 3 * time.Second
	punchLongest = 10 * time.Minute
	// maxOpened bounds the peers whose addresses are kept because a hole led there: some hundred
	// kilobytes, and many more than a node is connected to.
	maxOpened = 1024
	// movePause is the time between two looks at what a relayed connection still carries
	// beside a direct one, and moveTimeout the end of waiting for it.
	movePause   = time.Second
	moveTimeout = time.Minute
	// dialBackTimeout bounds a dial back: a peer may wait three seconds before it dials, and
	// gives an address ten.
	dialBackTimeout = 20 * time.Second
	// maxDialBack, maxDialBackData and dialBackPart are AutoNAT v2's: of a message, of what a
	// peer may want before it dials, and of a part of that.
	maxDialBack     = 8 << 10
	maxDialBackData = 100_000
	dialBackPart    = 4000
	// maxIdentify bounds libp2p's identify message, as libp2p does.
	maxIdentify = 8 << 10
)

// Limits on hints, and on the DHT of all runs.
const (
	// maxHintAddrs bounds the addresses of one hint: a few interfaces with two transports.
	maxHintAddrs = 8
	// hintPause and maxHintsAtOnce bound the hints that are handed up: a network with
	// more members than a node connects to, and one more each second.
	hintPause      = time.Second
	maxHintsAtOnce = 16
	// maxFound ends a search: as many peers as a node dials for, and some that are gone.
	maxFound = 16
	// searchTimeout bounds a search, discoveryTimeout a question in it, with the dial.
	searchTimeout    = 30 * time.Second
	discoveryTimeout = 10 * time.Second
	// maxBootstraps bounds the addresses that a search begins at beside the known ones.
	maxBootstraps = 8
	// announceEvery is how often a node says again that it is in its run, recordsFor how
	// long that is believed: one announcement may be lost. announceFirst is the pause before
	// a failed one is tried again, doubling, and between two because of new addresses.
	announceEvery = 20 * time.Minute
	announceFirst = 10 * time.Second
	recordsFor    = 50 * time.Minute
	// maxRuns, maxMembers and maxMemberAddrs bound what a node keeps of who is where: 4 MiB
	// at most. A newcomer needs a few members of a run, of which some may be gone.
	maxRuns        = 512
	maxMembers     = 16
	maxMemberAddrs = 4
	// maxDiscoveryMessage bounds a message of the DHT: twenty peers with eight addresses each.
	// libp2p's own bound is 4 MiB, which strangers could have this node allocate.
	maxDiscoveryMessage = 64 << 10
	// discoveryRate and discoveryBurst bound the streams of the DHT that are served, each second and
	// at once, over all peers; maxDiscoveryStreams those that are open. discoveryAddresses is how many addresses (see
	// guard.Origin) it takes to use them up: as many as take all connections.
	discoveryRate       = 50
	discoveryBurst      = 100
	maxDiscoveryStreams = 64
	discoveryAddresses  = guard.ConnsSystem / guard.ConnsAddress
)

// Limits on memory and streams that the resource manager enforces. Memory is
// what muxer windows (streamWindow, growing to 16 MiB with the link's delay and
// rate) and responses take.
const (
	// streamWindow lets half of it, 1 MiB, cover 100 Mbit/s over 80 ms: see muxer. All
	// streams of a peer that nobody reads hold less than memoryPeer.
	streamWindow = 2 << 20
	memorySystem = 2 << 30
	memoryPeer   = 512 << 20
	// memoryTransient bounds connections whose peer is not known yet. Streams whose protocol is not
	// known yet are in the same scope, where they have no bound of their own: one peer has streamsPeer, and
	// strangers have fewer. Nor do they have memory there, as muxers charge it to the peer.
	memoryTransient = 64 << 20
	// streamsPeer: requests both ways, gossip, identify and the handshake.
	streamsPeer = 2*servePeer + 32
	// streamsSystem lets every peer of a full node have a quarter of that, beside strangers.
	streamsSystem = connsHigh*streamsPeer/4 + guard.StrangersStreams
)

// Limits on gossip.
const (
	// maxEnvelope is what libp2p wraps around the messages of one transfer:
	// topic, lengths and a share of control messages.
	maxEnvelope = 1 << 10
	// outboundQueue is the number of messages that wait for one slow peer before
	// more are dropped. libp2p's 32 is less than one round of a large run. At 4
	// KiB each this is 4 MiB for a peer that has stopped reading.
	outboundQueue = 1024
	// validateQueue waits for signature checks: 4096 take about 0.3 s of a core.
	validateQueue = 4096
	// passOnAfter is how long a message waits before it is passed on: longer than two ways over the internet usually differ,
	// where no queue is long. Nodes that are not connected with the author hear of it so much later, which is a part of a
	// heartbeat period.
	passOnAfter = 100 * time.Millisecond
	// passing is how many messages wait for that at once: all that waited to be checked, which takes less than that time.
	passing = validateQueue
	// defaultInbox is the number of events that may wait for the node's loop.
	defaultInbox = 8192
	// seenFor is how long a message is known as a duplicate: longer than any
	// path through the mesh takes, and than IHAVE repeats it.
	seenFor = 2 * time.Minute
)

// Limits on requests.
const (
	// servePeer bounds the requests of one peer that are served at once, parked
	// ones included: a payload for each of a few dozen fragments.
	servePeer = 64
	// serveTotal bounds them over all peers. As many as there may be peers are for those of
	// whom none is served.
	serveTotal = 512
	// maxReading bounds the requests that have begun and not ended to arrive. One leaves its
	// asker in one piece, so there are few; beyond it who has the most of them loses its oldest.
	maxReading = serveTotal
	// requestTimeout bounds sending a request, which is at most 64 KiB.
	requestTimeout = 30 * time.Second
	// handleTimeout bounds the handler, parking (wire.MaxWaitMs) included.
	handleTimeout = 2 * wire.MaxWaitMs * time.Millisecond
)
