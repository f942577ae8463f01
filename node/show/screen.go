// Package show says what a node shows of itself. A Screen remembers what was only ever seen; Snapshot is a pure function of it and of views
// that change nothing.
package show

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Screen is what a node remembers only to show it. It belongs to one goroutine.
type Screen struct {
	log     *slog.Logger
	journal Journal // nil keeps nothing
	self    wire.PeerID

	events  []status.Event
	history status.History
	addrs   map[wire.PeerID]string
	refused []refusal               // who refused us or was refused, and why; each address once, the newest last
	before  map[string]status.Heard // what an earlier process heard
	dials   map[string]error        // by address: what the last dial came to
	ledger  []authors.Tokens        // per fragment
	weights map[wire.PeerID]float64
	speed   speedometer
	up      speedometer // bytes
	down    speedometer // bytes
	gaps    heartbeatGaps

	refusals refusalEvents

	firstSeq     uint64 // own deltas below it are of an earlier process
	contributors []int
	returned     []uint64 // own tokens, per fragment
	discarded    []uint64 // own tokens, per fragment
	lostHere     []uint64 // own tokens, per fragment: unpublished on damaged global parameters
	lostBefore   []uint64 // own tokens of earlier processes, per fragment: see FindLost
	rounds       uint64
	payloadBytes uint64
	payloadHeld  uint64
	joined       time.Time // own first delta folded
}

// Journal keeps events for longer than a screen does.
type Journal interface{ Keep(status.Event) }

// Bounds on what is kept for the screen.
const (
	maxEvents  = 200
	maxRefused = 64
	maxDials   = 64

	// refusedBurst and refusedEvery bound the events of refusals: as many as a group of people that
	// begins with a wrong link, and a tenth of maxEvents in twenty minutes.
	refusedBurst = 16
	refusedEvery = time.Minute

	refusedFor = 15 * time.Minute // a refusal is shown: whoever is concerned has looked by then
)

// refusal is a peer that is not taken in, and when it tried last.
type refusal struct {
	status.Peer
	id wire.PeerID
	at time.Time
}

// New is the screen of a node that has seen nothing yet.
func New(log *slog.Logger, journal Journal, self wire.PeerID, fragments int, p outer.Params) *Screen {
	v := &Screen{
		log: log, journal: journal, self: self,
		addrs: map[wire.PeerID]string{}, dials: map[string]error{},
		ledger: make([]authors.Tokens, fragments), weights: map[wire.PeerID]float64{}, gaps: heartbeatGaps{},
		contributors: make([]int, fragments), returned: make([]uint64, fragments), discarded: make([]uint64, fragments),
		lostHere: make([]uint64, fragments), lostBefore: make([]uint64, fragments),
	}
	for i := range v.ledger {
		v.ledger[i] = authors.New(p)
	}
	return v
}

// Event keeps something worth telling a person.
func (v *Screen) Event(kind, peer, text string) { v.Alarm(kind, peer, text, "") }

// Alarm keeps what somebody has to look after, with what to do.
func (v *Screen) Alarm(kind, peer, text, remedy string) {
	v.log.Info(text, "event", kind, "peer", peer)
	e := status.Event{At: time.Now(), Kind: kind, Peer: peer, Text: text, Remedy: remedy}
	if v.journal != nil {
		v.journal.Keep(e)
	}
	v.events = append(v.events, e)
	if len(v.events) > maxEvents {
		v.events = v.events[len(v.events)-maxEvents:]
	}
}

// Events are the last ones, the newest at the end.
func (v *Screen) Events() []status.Event { return slices.Clone(v.events) }

// Saw keeps what an event of the replica, or an effect that nobody executes, is worth to a person.
func (v *Screen) Saw(event any) {
	switch e := event.(type) {
	case gossip.Event:
		v.gossiped(e)
	case gossip.StateDiffers:
		v.log.Error("state differs", "peer", e.Peer, "rounds", e.Rounds)
		v.Alarm("state differs", e.Peer.String(), "this peer folded the same deltas to another state", "wait: the two compare, and it is said whose is wrong")
	case core.Refused:
		v.Event("delta refused", e.Header.Author.String(), fmt.Sprintf("fragment %d round %d: %v", e.Header.Fragment, e.Header.Round, e.Reason))
	case core.Verdict:
		v.verdict(e)
	case core.RaiseMark:
		v.Event("key", v.self.String(), fmt.Sprintf("fragment %d: peers hold deltas of this key that the ledger lacks: signs nothing up to round %d", e.Fragment, e.Round))
	case rounds.Closed:
		v.rounds++
		v.contributors[e.Fragment] = len(e.Link.Folded)
	case replica.PayloadOnDisk:
		v.payloadHeld += uint64(len(e.Payload))
	case replica.TipFolded:
		v.folded(e)
	case replica.Adopted:
		v.Adopted(e.Adopt)
		if e.MayRepair() {
			v.repaired(e.Adopt, e.Loss)
		}
	case replica.StepsLost:
		v.lostHere[e.Fragment] += e.Loss.Lost.Tokens
	case replica.Installed:
		v.left(e.From, e.Left)
	}
}

// otherStateAdvice is what to do about a fold that came to another result.
const otherStateAdvice = "one of the two has corrupt memory or a bug: stop both, run `atoll verify` on each folder, and do not use the model of the one that fails"

// LearnerRemedy is what to do about a program that trains and was lost.
const LearnerRemedy = "if it happens again, try it with `atoll doctor --learner CMD --try`"

// testMemory is what to do about values that are not what they were.
const testMemory = "if it happens again, test this machine's memory"

// Damaged tells of global parameters that are not what they were.
func (v *Screen) Damaged(err error) {
	v.Alarm("memory damaged", v.self.String(), fmt.Sprintf("%v: folds them again and goes on", err), testMemory)
}

// repaired tells that a sound tip has replaced a damaged one, or that work was lost
// because the run has gone on without it.
func (v *Screen) repaired(a outer.Adopt, loss outer.Loss) {
	if loss.Found != nil {
		v.Damaged(loss.Found)
	}
	fragment := a.Fragment
	v.lostHere[fragment] += loss.Lost.Tokens
	if loss.Device != nil {
		v.Alarm("learner lost", v.self.String(), fmt.Sprintf("fragment %d: lost were %d unpublished steps: %v", fragment, loss.Lost.Steps, loss.Device), LearnerRemedy)
		return
	}
	if a.GiveUp && loss.Gone == nil {
		v.Alarm("steps lost", v.self.String(), fmt.Sprintf("fragment %d: loses %d unpublished steps: the run went on without them for too long, and they would make its model worse", fragment, loss.Lost.Steps), "if this machine did not sleep, `atoll doctor` says whether it or its link is too slow")
		return
	}
	v.Event("repaired", v.self.String(), fmt.Sprintf("fragment %d has sound global parameters again; lost were %d unpublished steps and %d own deltas that could not be read", fragment, loss.Lost.Steps, len(loss.Gone)))
}

// verdict tells whose state was wrong.
func (v *Screen) verdict(e core.Verdict) {
	if e.Own {
		v.Alarm("state wrong", v.self.String(), fmt.Sprintf("fragment %d: folding the ledger again shows that this node's state was wrong from round %d on; it is repaired", e.Fragment, e.Round), "test this machine's memory")
		return
	}
	v.Alarm("state wrong", e.Peer.String(), fmt.Sprintf("fragment %d: folding the ledger again gives this node's state of round %d, so this peer's state is wrong", e.Fragment, e.Round), "it will find out by itself; tell its owner to test its memory")
}

// Finished tells that the run is over, and what its model is worth: agreed says
// that all live peers show the same deltas; those in others show another state.
func (v *Screen) Finished(agreed bool, others []wire.PeerID) {
	if !agreed {
		v.Event("finished", "", "the run is over and nothing has changed for long, but a live peer shows other deltas or still trains: compare with `atoll status` there before you use this model")
	} else if len(others) == 0 {
		v.Event("finished", "", "the run is over, and every live node holds the same digests")
	}
	for _, id := range others {
		v.Event("finished", id.String(), "the run is over, but this peer shows another state for the same deltas: "+otherStateAdvice)
	}
}

// nameOf is a peer's id, empty where an event is about none.
func nameOf(id wire.PeerID) string {
	if id == (wire.PeerID{}) {
		return ""
	}
	return id.String()
}

// gossiped keeps the news of gossip. What is routine, or shown elsewhere, goes
// to the log only: a screen full of repairs hides the one line that matters.
func (v *Screen) gossiped(e gossip.Event) {
	switch e.Kind {
	case gossip.EventJoined, gossip.EventRepair, gossip.EventSnapshot, gossip.EventAudit:
		v.log.Debug(e.Text, "event", e.Kind.String(), "peer", e.Peer)
	default:
		v.Event(e.Kind.String(), nameOf(e.Peer), e.Text)
	}
}

// peerInAddr is who is at an address: whom an event is about is said beside.
var peerInAddr = regexp.MustCompile(`/p2p/[^/]+`)

// sameWithin is how long a connection says nothing new: nodes that dial each other have two for a moment, and a newcomer that looked comes again.
const sameWithin = 10 * time.Second

// PeerUp keeps where a peer is connected. A refusal from before is over.
func (v *Screen) PeerUp(id wire.PeerID, role, addr string) {
	v.refused = slices.DeleteFunc(v.refused, func(r refusal) bool { return r.id == id })
	if len(v.addrs) < maxRefused || v.addrs[id] != "" {
		v.addrs[id] = addr
	}
	text := role
	if addr != "" {
		text += " at " + peerInAddr.ReplaceAllString(addr, "")
	}
	again := func(e status.Event) bool {
		return e.Kind == "connected" && e.Peer == id.String() && time.Since(e.At) < sameWithin
	}
	if !slices.ContainsFunc(v.events, again) {
		v.Event("connected", id.String(), text)
	}
}

// Refused keeps who was refused last. Strangers have themselves refused as often as they like: few of them are events, or
// nothing else would be seen.
func (v *Screen) Refused(id wire.PeerID, addr string, reason error) {
	v.refused = slices.DeleteFunc(v.refused, func(r refusal) bool { return r.Addr == addr || r.id == id })
	if len(v.refused) == maxRefused {
		v.refused = slices.Delete(v.refused, 0, 1)
	}
	v.refused = append(v.refused, refusal{status.Peer{ID: hex.EncodeToString(id[:]), State: status.Refused, Addr: addr, Reason: reason.Error()}, id, time.Now()})
	told, more := v.refusals.count(time.Now())
	if !told {
		return
	}
	text := reason.Error()
	if more > 0 {
		text += fmt.Sprintf(" (and %d more were refused since the last one that is shown)", more)
	}
	v.Event("refused", id.String(), text)
}

// refusalEvents bounds the events that refusals make: a burst, and one a minute afterwards.
type refusalEvents struct {
	full time.Time // when the burst is there again
	more int       // refusals that made none since the last that did
}

// count says whether a refusal is an event, and how many before it were none.
func (r *refusalEvents) count(now time.Time) (told bool, more int) {
	if r.full.Before(now) {
		r.full = now
	}
	if r.full.Sub(now) > (refusedBurst-1)*refusedEvery {
		r.more++
		return false, 0
	}
	r.full = r.full.Add(refusedEvery)
	more, r.more = r.more, 0
	return true, more
}

// Dialled keeps what a dial came to.
func (v *Screen) Dialled(addr string, err error) {
	if err == nil {
		delete(v.dials, addr)
		return
	}
	if len(v.dials) < maxDials {
		v.dials[addr] = err
	}
	v.log.Debug("dial", "addr", addr, "err", err)
}

// Dials are the addresses that do not answer, and why.
func (v *Screen) Dials() map[string]error { return v.dials }

// Called counts the payload bytes that a call brought.
func (v *Screen) Called(e gossip.Call, size int) {
	req, err := wire.DecodeRequest(e.Request)
	if err == nil && req.Kind == wire.GetPayload && size > 0 {
		v.payloadBytes += uint64(size - 1) // without the status
	}
}

// Heard takes a gossip message: it may bring a payload, and a heartbeat makes a gap.
func (v *Screen) Heard(now core.Time, msg wire.Message) {
	v.payloadBytes += uint64(len(msg.Inline))
	if msg.Heartbeat != nil {
		v.gaps.heard(now, msg.Heartbeat)
	}
}

// weightDecay is the weight of the past in the mean share of an author.
const weightDecay = 0.9

// folded records who contributed to the rounds of a fold, and with which weight.
func (v *Screen) folded(e replica.TipFolded) {
	for i, set := range e.Want.Sets {
		v.ledger[e.Want.Fragment].Fold(e.Links[i].Round, set, e.Links[i].Folded)
	}
	for id := range v.weights {
		v.weights[id] *= weightDecay
	}
	for id, share := range e.Shares {
		v.weights[id] += (1 - weightDecay) * share
	}
}

// Adopted records what became of own deltas, and the moment at which the node's
// own work first counts.
func (v *Screen) Adopted(a outer.Adopt) {
	v.returned[a.Fragment] += a.Tokens(outer.Returned)
	v.discarded[a.Fragment] += a.Tokens(outer.Discarded, outer.Dropped)
	v.discarded[a.Fragment] -= min(v.discarded[a.Fragment], a.Tokens(outer.Regained))
	mine := func(seq uint64) bool { return seq >= v.firstSeq }
	if v.joined.IsZero() && slices.ContainsFunc(a.Seqs(outer.Folded), mine) {
		v.joined = time.Now()
		v.Event("contributing", "", "first own delta is folded")
	}
}

// left tells what was left behind with a chain.
func (v *Screen) left(source wire.PeerID, c core.Left) {
	deltas, tokens := 0, uint64(0)
	for p := range c.Own {
		v.discarded[p] += c.Final[p]
		deltas += len(c.Own[p])
		tokens += c.Tokens[p]
	}
	tokens /= uint64(max(len(c.Own), 1)) // each step's tokens are in every fragment's deltas
	if deltas > 0 {
		v.Event("left a chain", source.String(), fmt.Sprintf("%d own deltas, about %d tokens, are not folded on the peer's chain, for which this node left its own; `atoll ledger` lists them", deltas, tokens))
	}
}

// Speed takes how many tokens are folded by now.
func (v *Screen) Speed(at time.Time, folded uint64) { v.speed.record(at, folded, speedEvery) }

// Carried takes how many bytes all connections carried by now.
func (v *Screen) Carried(at time.Time, sent, received uint64) {
	v.up.record(at, sent, trafficEvery)
	v.down.record(at, received, trafficEvery)
}

// Restore goes on with what an earlier process kept.
func (v *Screen) Restore(k status.Kept) {
	v.history, v.before = status.RestoreHistory(k.History), k.Heard
}

// History is the history of the run up to a snapshot. What a joiner has is not where the run is.
func (v *Screen) History(until status.Snapshot) []status.Point {
	if until.State == wire.Joining.String() {
		return v.history.Points()
	}
	return v.history.Until(status.PointOf(until))
}

// Count takes what the folder has of each fragment by author.
func (v *Screen) Count(ledger []authors.Tokens) { v.ledger = ledger }

// OwnFrom takes the number of the first own delta of this process.
func (v *Screen) OwnFrom(seq uint64) { v.firstSeq = seq }

// speedometer measures an amount per second over its samples.
type speedometer struct {
	at     []time.Time
	amount []uint64
}

// Samples are so far apart and speedSamples are kept: a minute of tokens, and ten of traffic, which comes by rounds.
const (
	speedEvery   = time.Second
	trafficEvery = 10 * time.Second
	speedSamples = 60
)

func (s *speedometer) record(at time.Time, amount uint64, every time.Duration) {
	if n := len(s.at); n > 0 && at.Sub(s.at[n-1]) < every {
		return
	}
	s.at, s.amount = append(s.at, at), append(s.amount, amount)
	if len(s.at) > speedSamples {
		s.at, s.amount = s.at[1:], s.amount[1:]
	}
}

func (s *speedometer) perSecond() float64 {
	n := len(s.at)
	if n < 2 || s.amount[n-1] <= s.amount[0] {
		return 0
	}
	return float64(s.amount[n-1]-s.amount[0]) / s.at[n-1].Sub(s.at[0]).Seconds()
}
