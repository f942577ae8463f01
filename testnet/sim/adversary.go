package sim

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"maps"
	"regexp"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Attack is what a node does that no honest node does. The node runs the real
// core and lies at its edge, where bytes leave it; before From it is honest, so
// that it can have contributed.
type Attack struct {
	Kind  AttackKind `json:"kind,omitempty"`    // "" = honest
	From  Time       `json:"from_ms,omitempty"` // after the start
	Times float64    `json:"times,omitempty"`   // by what a delta is scaled, or how much of a lie there is; see the kinds
	Ahead uint32     `json:"ahead,omitempty"`   // rounds that an invented run has closed more
}

// AttackKind names a lie.
type AttackKind string

// The kinds of attacks.
const (
	// Deltas.
	SignFlip AttackKind = "sign-flip" // progress, times -Times
	Scale    AttackKind = "scale"     // progress, times Times
	Unfinite AttackKind = "unfinite"  // values or scales that are not finite
	Garbage  AttackKind = "garbage"   // random bytes behind a valid header
	Inflate  AttackKind = "inflate"   // the most steps and tokens that genesis allows, progress times Times
	Zero     AttackKind = "zero"      // no value, for all the steps that were taken
	Noise    AttackKind = "noise"     // noise of the progress's norm, times Times
	Copy     AttackKind = "copy"      // the newest delta of somebody else, and noise of its norm, times Times

	// Headers.
	Equivocate      AttackKind = "equivocate"       // two deltas for one round, each shown to one half
	LateProof       AttackKind = "late-proof"       // likewise, but the second one Times rounds later
	OneProof        AttackKind = "one-proof"        // likewise, for one round only, until that is known: deltas of later rounds are honest
	ShownToHalf     AttackKind = "shown-to-half"    // headers leave over every other connection only
	StaleRounds     AttackKind = "stale-rounds"     // fresh keys sign for rounds that are closed
	FarRounds       AttackKind = "far-rounds"       // fresh keys sign for rounds far ahead
	PayloadMissing  AttackKind = "payload-missing"  // fresh keys, and its own, sign for every open round; no payload follows
	WindowsEdge     AttackKind = "windows-edge"     // a delta appears, for one half, when its round becomes final
	FalseHeartbeats AttackKind = "false-heartbeats" // rounds, tokens, unpublished work and digests of no chain
	FreshHeartbeats AttackKind = "fresh-heartbeats" // likewise, by Times fresh keys
	InventedRun     AttackKind = "invented-run"     // shows and gives a chain that it folded by itself, with more tokens; so do Times fresh keys in heartbeats
	BoughtRun       AttackKind = "bought-run"       // likewise, from 10 s after it began to claim the most tokens that it may for honest progress

	// Strangers: fresh keys, and nothing behind them.
	SybilRun    AttackKind = "sybil-run"    // Times keys have one empty delta folded each, then show an invented run
	ClaimRun    AttackKind = "claim-run"    // the same, where each of these deltas claims the most
	MostClaims  AttackKind = "most-claims"  // Times keys claim the most for every round and push one way
	OneClaim    AttackKind = "one-claim"    // one empty delta for each fragment claims the most
	BurstRounds AttackKind = "burst-rounds" // Times keys sign for Times rounds at one moment
	FullRound   AttackKind = "full-round"   // Times keys fill the open round of one half, as many others that of the other half
	LastRound   AttackKind = "last-round"   // a fresh key every heartbeat period signs for the last closed round, for ever
	LateSets    AttackKind = "late-sets"    // likewise, and nobody hears of it but by repair: its sets have these deltas
	BareHeaders AttackKind = "bare-headers" // Times headers a second have no payload
	IdleCrowd   AttackKind = "idle-crowd"   // Times keys send heartbeats as learners that make nothing
	Undead      AttackKind = "undead"       // revoked, it signs for every open round all the same

	// Answers.
	WithholdAll   AttackKind = "withhold-all"   // payloads, from everybody
	WithholdSome  AttackKind = "withhold-some"  // payloads, from one half
	WrongPayloads AttackKind = "wrong-payloads" // other bytes than were signed
	WrongChunks   AttackKind = "wrong-chunks"   // of a snapshot
	ShortChunks   AttackKind = "short-chunks"   // of a snapshot, cut off
	FalseStates   AttackKind = "false-states"   // the right chain with another state, in heartbeats and answers
	StallRepairs  AttackKind = "stall-repairs"  // other rounds in heartbeats, and no answer to who compares them
	HoldSessions  AttackKind = "hold-sessions"  // sessions with everybody, and nothing over them
)

// behaviour is where a kind of attack lies. What is nil is honest.
type behaviour struct {
	spoil  func(l *liar, p int, d *outer.Draft)                          // what its learner made
	say    func(l *liar, m wire.Message) (said bool)                     // what it publishes
	answer func(l *liar, to *Node, q wire.Request, honest []byte) []byte // nil: no answer
	act    func(l *liar)                                                 // of its own accord, every heartbeat period
	mute   bool                                                          // it passes no gossip on
}

var behaviours = map[AttackKind]behaviour{
	SignFlip: {spoil: func(l *liar, p int, d *outer.Draft) { l.scale(p, d, -l.Times) }},
	Scale:    {spoil: func(l *liar, p int, d *outer.Draft) { l.scale(p, d, l.Times) }},
	Unfinite: {spoil: spoilUnfinite},
	Garbage:  {spoil: spoilGarbage},
	Inflate:  {spoil: spoilInflate},

	Zero:  {spoil: spoilZero},
	Noise: {spoil: spoilNoise},
	Copy:  {spoil: spoilCopy},

	Equivocate:      {say: sayTwo, answer: answerForged},
	LateProof:       {say: saveProof, act: actProofs},
	OneProof:        {say: saveOneProof, act: actProofs},
	ShownToHalf:     {say: sayToHalf},
	StaleRounds:     {act: actStale},
	FarRounds:       {act: actFar},
	PayloadMissing:  {act: actPayloadMissing},
	WindowsEdge:     {say: sayRestless, answer: answerEdge, act: actEdge},
	FalseHeartbeats: {say: sayFalseHeartbeat},
	FreshHeartbeats: {act: actFreshHeartbeats},

	BoughtRun:   {spoil: spoilInflate, say: sayInvented, answer: answerInvented, act: actBought},
	InventedRun: {say: sayInvented, answer: answerInvented, act: actInvented},

	SybilRun:    {say: sayInvented, answer: answerInvented, act: actSybils},
	ClaimRun:    {say: sayInvented, answer: answerInvented, act: actSybils},
	MostClaims:  {answer: answerForged, act: actMostClaims},
	OneClaim:    {answer: answerForged, act: actOneClaim},
	BurstRounds: {answer: answerForged, act: actBurst},
	FullRound:   {answer: answerForged, act: actFullRound},
	LastRound:   {answer: answerForged, act: actLastRound},
	LateSets:    {say: sayRestless, answer: answerWithEdge, act: actLateSets},
	BareHeaders: {act: actBareHeaders},
	IdleCrowd:   {say: keepLast, act: actIdleCrowd},
	Undead:      {answer: answerForged, act: actUndead},

	WithholdAll:   {answer: answerNoPayload},
	WithholdSome:  {answer: answerNoPayloadToHalf},
	WrongPayloads: {answer: answerWrong(wire.GetPayload)},
	WrongChunks:   {answer: answerWrong(wire.GetChunk)},
	ShortChunks:   {answer: answerShort},
	FalseStates:   {say: sayFalseState, answer: answerFalseState},
	StallRepairs:  {say: sayRestless, answer: answerNoRepair},
	HoldSessions:  {mute: true, answer: answerPeerListOnly, act: actSessions},
}

// liar is the edge of a node that lies.
type liar struct {
	Attack
	behaviour
	n         *Node
	made      map[uint64][]byte      // by seq: what its learner made, where it signed something else
	payloads  map[wire.Digest][]byte // of deltas that its core knows nothing of
	claimed   []uint64               // tokens in all that it signed, by fragment
	proofs    []wire.Equivocation    // to be published later
	edge      []edgeDelta
	invented  *invention
	keys      []ed25519.PrivateKey // that it made, besides its own
	forgotten int                  // keys made before those
	acted     int
	signed    map[int]uint32  // by fragment: the newest round that its keys signed for
	shown     int             // headers without payloads
	last      *wire.Heartbeat // of its core
	misled    map[*Node]bool  // whom it gave other answers than its core's
}

// newLiar returns nil for an honest node.
func newLiar(n *Node) *liar {
	if n.spec.Attack.Kind == "" {
		return nil
	}
	n.w.checks.faulty[n.id] = true
	return &liar{
		Attack: n.spec.Attack, behaviour: behaviours[n.spec.Attack.Kind], n: n,
		made: map[uint64][]byte{}, payloads: map[wire.Digest][]byte{}, claimed: make([]uint64, len(n.w.plan)),
		signed: map[int]uint32{},
	}
}

// lies says that the time of the lie has come.
func (n *Node) lies() bool { return n.liar != nil && n.w.now >= Start+n.liar.From }

// spoils says that what it publishes now is not what its learner made.
func (n *Node) spoils() bool { return n.lies() && n.liar.spoil != nil }

// ownPayload is what the learner reads back: what it made, whatever was signed.
func (n *Node) ownPayload(seq uint64) ([]byte, error) {
	if n.liar != nil && n.liar.made[seq] != nil {
		return n.liar.made[seq], nil
	}
	return n.replica.OwnPayload(seq)
}

// liars counts the nodes that lie, now or later.
func (w *World) liars() (count int) {
	for _, n := range w.nodes {
		if n.liar != nil {
			count++
		}
	}
	return count
}

// claimed are the tokens of a fragment that liars signed for who are no guests.
func (w *World) claimed(p int) (tokens float64) {
	for _, n := range w.members() {
		if n.liar != nil {
			tokens += float64(n.liar.claimed[p])
		}
	}
	return tokens
}

func (l *liar) everyMs() Time { return l.n.w.s.HeartbeatMs }

func (l *liar) acts() {
	if l.n.lies() && l.act != nil {
		l.acted++
		l.act(l)
	}
}

// spoils changes a draft on its way from the learner to the core.
func (l *liar) spoils(p int, d outer.Draft) outer.Draft {
	if l.spoil != nil {
		l.made[d.Seq] = d.Payload
		l.spoil(l, p, &d)
	}
	return d
}

// says publishes something else in place of a gossip message, or reports false.
func (l *liar) says(b []byte) bool {
	if l.say == nil {
		return false
	}
	m, err := wire.Open(l.n.w.run, b)
	return err == nil && l.say(l, m)
}

// answers changes an answer; nil is never sent.
func (l *liar) answers(q *exchange, honest []byte) []byte {
	if l.answer == nil {
		return honest
	}
	request, err := wire.DecodeRequest(q.request)
	if err != nil {
		return honest
	}
	b := l.answer(l, q.by, request, honest)
	if b != nil && !bytes.Equal(b, honest) {
		if l.misled == nil {
			l.misled = map[*Node]bool{}
		}
		l.misled[q.by] = true
	}
	return b
}

// publish sends a message over the connections to those nodes; they pass it on.
func (l *liar) publish(b []byte, to func(*Node) bool) {
	m := l.n.w.newMessage(b, wire.Open)
	m.met(l.n.index)
	for _, p := range l.n.links {
		if to(p) {
			l.n.send(p, m)
		}
	}
}

func everybody(*Node) bool  { return true }
func evenHalf(n *Node) bool { return n.index%2 == 0 }
func oddHalf(n *Node) bool  { return n.index%2 == 1 }

// freshKey makes a key that nobody has seen. Keys are free.
func (l *liar) freshKey() ed25519.PrivateKey {
	var seed [ed25519.SeedSize]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(l.n.index)+1)
	binary.LittleEndian.PutUint64(seed[8:], uint64(l.forgotten+len(l.keys))+1)
	key := ed25519.NewKeyFromSeed(seed[:])
	l.keys = append(l.keys, key)
	l.n.w.checks.faulty[wire.PeerIDOf(key)] = true
	l.admit(key)
	return key
}

// admit lets a key in by the liar's invite, if that is for guests or has leaked: whoever has it can. All nodes know the certificate
// at once, as far as they have room, and keep it, as if the key had begun a session with each.
func (l *liar) admit(key ed25519.PrivateKey) {
	if !l.n.spec.Guest && !l.n.spec.Leaked {
		return
	}
	c, err := l.n.w.door.admits(l.n).Admit(l.n.w.run, key)
	if err == nil {
		_, err = l.n.members.AddHeld(c)
	}
	if err != nil {
		panic("sim: a liar's certificate: " + err.Error())
	}
	for _, n := range l.n.w.nodes {
		if !n.up {
			continue
		}
		if fresh, _ := n.members.Add(c); fresh {
			_ = n.disk.PutMember(c) // a full disk forgets it
		}
	}
}

// sign makes a header with a payload of its own and tells the world of it, so
// that folding it is no surprise.
func (l *liar) sign(key ed25519.PrivateKey, h wire.Header, payload []byte) wire.SignedHeader {
	w := l.n.w
	if of := l.n.members.Of(wire.PeerIDOf(key)); len(of) > 0 {
		h.Certificate = of[0].ID(w.run)
	}
	h.Codec, h.Size, h.Payload = uint8(w.s.Params.Codec), uint32(len(payload)), wire.Sum(payload)
	sh := wire.SignHeader(key, w.run, h)
	id := sh.Header.ID(w.run)
	w.checks.ledger[id] = &sh.Header
	l.payloads[id] = payload
	l.claimed[h.Fragment] += h.Tokens
	return sh
}

// victim is an honest node, for what an attacker can see of the run.
func (l *liar) victim() *Node { return l.n.w.first() }

// catch records what an honest node found wrong with a liar.
func (c *checks) catch(n *Node, who wire.PeerID, reason string) {
	if n.liar == nil && c.faulty[who] {
		c.caught[numbers.ReplaceAllString(reason, "#")]++
	}
}

// numbers are what differs between two reasons of one kind: counts and digests.
var numbers = regexp.MustCompile(`\b[0-9a-f]*[0-9][0-9a-f]*\b`)

// noticed records what an honest node shows people of itself and of a liar.
func (c *checks) noticed(n *Node, e gossip.Event) {
	if e.Kind == gossip.EventJoin {
		c.told[n] = append(c.told[n], e.Text)
	}
	kinds := []gossip.EventKind{gossip.EventEquivocation, gossip.EventGaveUp, gossip.EventFork, gossip.EventAudit}
	if slices.Contains(kinds, e.Kind) {
		c.catch(n, e.Peer, e.Text)
	}
}

// AttackKinds are the names of all attacks, sorted.
func AttackKinds() []AttackKind { return slices.Sorted(maps.Keys(behaviours)) }
