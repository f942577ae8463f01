// Package p2p carries bytes between nodes: connections, the handshake on each,
// gossip, requests and their responses. It is the only importer of libp2p, with packages address, guard and traffic, and
// knows nothing of rounds: what it is given to send it sends, what arrives it
// hands up as events.
//
// A Host listens and dials over TCP (noise, yamux) and QUIC. On a new
// connection both sides exchange signed capability records (handshake.go);
// until that succeeded neither gossip nor requests pass. Gossip is one
// gossipsub topic for the run (gossip.go). A request is a stream of its own
// (rpc.go); long responses are paced so that gossip on the same connection is
// not starved, and caps of an owner bound both ways (package bulk, and traffic, which counts). What happens comes out of
// Events, in order.
// Services that need more than a question and an answer open streams (stream.go),
// which the baselines of testnet do.
//
// Files, each may use those above it:
//
//	limits                     bounds on connections, the handshake and being reached
//	log                        what libp2p logs
//	tasks                      goroutines that Close waits for
//	arrival                    when a response came
//	reading                    requests that are still arriving, bounded over all peers
//	outward                    the address through which this machine reaches others
//	listen                     listen at addresses, each alone
//	records                    what this node keeps for the DHT
//	config                     what a host is told
//	events, inbox              what happened, and the queue to its one reader
//	host, peers                the host, and the peers that it accepted
//	refusals                   why a peer is refused
//	dialing_unix, dialing_windows  bound segments of TCP
//	dialing                    how TCP is dialled
//	transports                 sockets, and the bytes that they carry
//	stats, tracer              what a host has carried, and what gossip does
//	hints                      what a network says of other nodes
//	inspect                    look at what a peer sends before gossip does
//	clock                      the time of another machine
//	rpc                        requests, a stream each
//	block                      have nothing to do with a peer
//	reach                      how others reach this node
//	mdns                       find nodes on the same network
//	duplicatekey               another process with this node's key
//	gate                       gossip waits for the handshake
//	stream                     services of more than a question and an answer
//	options                    how libp2p is put together
//	messenger, discovery       the DHT: ask its peers, serve it, find nodes by it
//	relay                      slots at relays, and being one
//	punch                      punch holes for direct connections
//	move                       what goes through a relay moves to a direct connection
//	gossip, regain, reconnect  the topic, and how its streams are mended
//	handshake                  what both sides of a connection say first
//	outside                    how others reach this machine, before there is a node
//
// # Being reached
//
// A host on the internet (profile WAN) follows what libp2p finds out about its addresses
// and hands up what is true of them as Addresses events (reach.go): public ones that an
// interface has, that AutoNAT v2 confirmed or that a router forwards, and those through relays. Which peers to
// reserve at is decided above (relay.go carries it out); a host that is public relays itself
// for peers of its run, within a budget. A relayed connection carries everything but gossip,
// which the relay spreads by itself (gossip.go). Two that
// met through a relay punch a hole (punch.go), and what goes between them moves to the direct
// connection (move.go).
//
// # Finding peers
//
// On one network nodes of a run hear each other by multicast (mdns.go). Nodes that others reach
// keep a DHT for all runs (discovery.go, messenger.go, records.go). What either says is handed
// up as a Hint, and whom to dial is decided above. A Trial host finds out how others reach
// this machine, for a person who has not joined yet (outside.go, clock.go).
//
// # Bounds
//
// Every number from the network has a limit, in limits.go or beside what it bounds. A peer that is not
// read, or does not read, costs a queue of known length and is given up after a
// known time. Events never block the network: see inbox for what is dropped.
// Peers that are not accepted yet have few streams, each, from one address and together, and guests have few
// slots at a relay (package guard).
//
// Peers that come through a relay are of the relay's address: a node sees no other, and the key that the relay names costs
// nothing. The relay takes circuits of those alone that it has accepted itself, maxCircuits to each node, and the streams of so many
// strangers fit (guard.StrangersAddress). What remains is that a few keys of members, or of anybody in an open run, can
// take all of a node's circuits at one relay: guard.ConnsPeer each, for helloTimeout or for as long as they behave. Others then
// reach that node through its other relays alone. The relay sees where they come from, but libp2p does not tell its ACL when a circuit
// ends, so it cannot count them by that.
//
// # What this relies on in the libraries
//
// Read in go-libp2p v0.51.0 and go-libp2p-pubsub v0.17.0; check again when they
// are upgraded.
//
//   - pubsub marks a message as seen before validators run, and never shows
//     them a duplicate (validation.go, validate; pubsub.go, shouldPush). So
//     Config.Check may refuse for good what it refuses by state that changes,
//     if that comes another way too (see validate). The RawTracer sees copies.
//   - The inspector sees an RPC before all else, in pubsub's one loop, and may take
//     messages out of it (pubsub.go, handleIncomingRPC).
//   - pubsub drops silently when a queue of 32 is full: to be validated
//     (Push), to a peer (rpc_queue.go). Both are sized in limits.go and counted by
//     tracer. A message over the size limit is dropped as silently (gossipsub.go, sendRPC),
//     so Publish checks.
//   - Inline validators run in pubsub's workers, one for each core; others after them, in a
//     goroutine each, and gossip passes the message on when they return (validation.go).
//     IDONTWANT goes out before both (pubsub.go, handleIncomingRPC), and the author of a
//     message says it too (topic.go, validate).
//   - pubsub opens streams as soon as identify is done and calls the host's
//     SetStreamHandler and NewStream for them (comm.go, peer_notify.go): gate.go
//     makes both wait for the handshake.
//   - pubsub has no Close. Its loop and workers end with the context, its stream
//     handlers with their streams, and Close waits for the latter.
//   - The swarm calls Connected before it accepts streams on the connection,
//     and Connected and Disconnected one after the other from one goroutine,
//     which must not be blocked (swarm.go, addConn; connection_events_emitter.go).
//   - The TCP transport sets linger to 0: closing a connection throws away what
//     was not sent yet. Hence the handshake waits for the peer's verdict.
//   - Its own dialer takes no options of sockets; one that is given in its place dials alone (tcp.go, maDial): see dialer.
//   - The TCP transport listens with SO_REUSEPORT, and the swarm is content when
//     one of several addresses can be listened on: listen.go checks both.
//   - yamux hands up to 64 messages of up to 64 KiB to its writer before streams
//     take turns (session.go, sendCh; mux.go, MaxMessageSize), and a stream's
//     window grows to 16 MiB: hence the pacer.
//   - Each yamux stream reserves 256 KiB with the resource manager, whatever its
//     first window is, and what the window grows by: memoryPeer allows for that,
//     and streamWindow keeps what all streams of a peer can hold below it.
//   - A yamux window that grows forgets what it had not granted yet (stream.go,
//     sendWindowUpdate, takes the second result of GrowTo alone): see muxer.
//   - A QUIC connection manager made by a constructor that is not libp2p's own
//     is not closed by the host (config.go, addTransports): Close does.
//   - The swarm keeps one connection to a peer that it dials, and gossipsub the stream
//     that it opened first: see seenBy and move.
//   - gossipsub forgets what a peer subscribed to when its own stream to that peer ends, gives a
//     peer up whose streams ended four times, or to which it could open none: see regain.
//   - The resource manager lets one IP address open a connection in five seconds, in either
//     direction: see newConnRates.
//   - holepunch.Service begins an attempt when a relayed connection comes in, with what it
//     knows of its own address then, and never again: see keepPunching. Its DirectConnect
//     waits without end while no address is known.
//   - kad-dht has no bound but 4 MiB on a message that it reads (dht_net.go), none on the
//     records that it keeps, and dials through the host whom it asks: see bounded, Records
//     and messenger. It forgets a peer whose addresses the peerstore has forgotten, after
//     two minutes for one that was never connected: see messenger.open.
//   - The mDNS service tells the addresses that the host had when it began: see findNear.
//   - The client of AutoNAT v2 asks a server once in two minutes: see DialBack.
//   - The relay copies between streams of its host: see relayHost. Without limits in its
//     Resources the connections are not Limited.
//   - The bandwidth counter of libp2p starts a goroutine for the life of the
//     process; package traffic does not.
package p2p
