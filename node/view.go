package node

import (
	"fmt"
	"slices"
	"time"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// view is what the loop remembers only to show it.
type view struct {
	events  []status.Event
	history status.History
	addrs   map[wire.PeerID]string
	refused []status.Peer    // who refused us or was refused, and why; each address once, the newest last
	dials   map[string]error // by address: what the last dial came to
	ledger  []authors.Tokens // per fragment
	weights map[wire.PeerID]float64
	speed   speedometer
	gaps    heartbeatGaps

	refusals refusalEvents

	contributors []int
	returned     []uint64 // own tokens, per fragment
	discarded    []uint64 // own tokens, per fragment
	lostHere     []uint64 // own tokens, per fragment: unpublished on damaged global parameters
	lostBefore   []uint64 // own tokens of earlier processes, per fragment: see findLost
	rounds       uint64
	payloadBytes uint64
	payloadHeld  uint64
	joined       time.Time // own first delta folded
}

// Bounds on what is kept for the screen.
const (
	maxEvents  = 200
	maxRefused = 64
	maxDials   = 64

	// refusedBurst and refusedEvery bound the events of refusals: as many as a group of people that
	// begins with a wrong link, and a tenth of maxEvents in twenty minutes.
	refusedBurst = 16
	refusedEvery = time.Minute
)

func newView(fragments int, p outer.Params) view {
	v := view{
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

// event keeps something worth telling a person.
func (v *view) event(n *node, kind, peer, text string) { v.alarm(n, kind, peer, text, "") }

// alarm keeps what somebody has to look after, with what to do.
func (v *view) alarm(n *node, kind, peer, text, remedy string) {
	n.log.Info(text, "event", kind, "peer", peer)
	e := status.Event{At: time.Now(), Kind: kind, Peer: peer, Text: text, Remedy: remedy}
	n.journalEvent(e)
	v.events = append(v.events, e)
	if len(v.events) > maxEvents {
		v.events = v.events[len(v.events)-maxEvents:]
	}
}

// record keeps effects that are only worth showing.
func (v *view) record(n *node, e core.Effect) {
	switch e := e.(type) {
	case gossip.Event:
		v.gossiped(n, e)
	case gossip.StateDiffers:
		n.log.Error("state differs", "peer", e.Peer, "rounds", e.Rounds)
		v.alarm(n, "state differs", e.Peer.String(), "this peer folded the same deltas to another state", "wait: the two compare, and it is said whose is wrong")
	case core.Refused:
		v.event(n, "delta refused", e.Header.Author.String(), fmt.Sprintf("fragment %d round %d: %v", e.Header.Fragment, e.Header.Round, e.Reason))
	case rounds.Closed:
		v.rounds++
		v.contributors[e.Fragment] = len(e.Link.Folded)
	}
}

// otherStateAdvice is what to do about a fold that came to another result.
const otherStateAdvice = "one of the two has corrupt memory or a bug: stop both, run `atoll verify` on each folder, and do not use the model of the one that fails"

// testMemory is what to do about values that are not what they were.
const testMemory = "if it happens again, test this machine's memory"

// damaged tells of global parameters that are not what they were.
func (v *view) damaged(n *node, err error) {
	v.alarm(n, "memory damaged", n.self.String(), fmt.Sprintf("%v: folds them again and goes on", err), testMemory)
}

// repaired tells that a sound tip has replaced a damaged one, or that work was lost
// because the run has gone on without it.
func (v *view) repaired(n *node, a outer.Adopt, loss outer.Loss) {
	if loss.Found != nil {
		v.damaged(n, loss.Found)
	}
	fragment := a.Fragment
	v.lostHere[fragment] += loss.Lost.Tokens
	if loss.Device != nil {
		v.alarm(n, "learner lost", n.self.String(), fmt.Sprintf("fragment %d: lost were %d unpublished steps: %v", fragment, loss.Lost.Steps, loss.Device), learnerRemedy)
		return
	}
	if a.GiveUp && loss.Gone == nil {
		v.alarm(n, "steps lost", n.self.String(), fmt.Sprintf("fragment %d: loses %d unpublished steps: the run went on without them for too long, and they would make its model worse", fragment, loss.Lost.Steps), "if this machine did not sleep, `atoll doctor` says whether it or its link is too slow")
		return
	}
	v.event(n, "repaired", n.self.String(), fmt.Sprintf("fragment %d has sound global parameters again; lost were %d unpublished steps and %d own deltas that could not be read", fragment, loss.Lost.Steps, len(loss.Gone)))
}

// verdict tells whose state was wrong.
func (v *view) verdict(n *node, e core.Verdict) {
	if e.Own {
		v.alarm(n, "state wrong", n.self.String(), fmt.Sprintf("fragment %d: folding the ledger again shows that this node's state was wrong from round %d on; it is repaired", e.Fragment, e.Round), "test this machine's memory")
		return
	}
	v.alarm(n, "state wrong", e.Peer.String(), fmt.Sprintf("fragment %d: folding the ledger again gives this node's state of round %d, so this peer's state is wrong", e.Fragment, e.Round), "it will find out by itself; tell its owner to test its memory")
}

// finished tells that the run is over, and what its model is worth: agreed says
// that all live peers show the same deltas; those in others show another state.
func (v *view) finished(n *node, agreed bool, others []wire.PeerID) {
	if !agreed {
		v.event(n, "finished", "", "the run is over and nothing has changed for long, but a live peer shows other deltas or still trains: compare with `atoll status` there before you use this model")
	} else if len(others) == 0 {
		v.event(n, "finished", "", "every live node holds the same digests: this is the run's model")
	}
	for _, id := range others {
		v.event(n, "finished", id.String(), "the run is over, but this peer shows another state for the same deltas: "+otherStateAdvice)
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
func (v *view) gossiped(n *node, e gossip.Event) {
	switch e.Kind {
	case gossip.EventJoined, gossip.EventRepair, gossip.EventSnapshot, gossip.EventAudit:
		n.log.Debug(e.Text, "event", e.Kind.String(), "peer", e.Peer)
	default:
		v.event(n, e.Kind.String(), nameOf(e.Peer), e.Text)
	}
}

func (v *view) peerUp(n *node, e p2p.PeerUp) {
	if len(v.addrs) < maxRefused || v.addrs[e.ID] != "" {
		v.addrs[e.ID] = e.Addr
	}
	text := e.Record.Role
	if e.Addr != "" {
		text += " at " + e.Addr
	}
	v.event(n, "connected", e.ID.String(), text)
}

// refusedPeer keeps who was refused last. Strangers have themselves refused as often as they like: few of them are events, or
// nothing else would be seen.
func (v *view) refusedPeer(n *node, e p2p.Refused) {
	v.refused = slices.DeleteFunc(v.refused, func(p status.Peer) bool { return p.Addr == e.Addr })
	if len(v.refused) == maxRefused {
		v.refused = slices.Delete(v.refused, 0, 1)
	}
	v.refused = append(v.refused, status.Peer{ID: e.ID.String(), State: "refused", Addr: e.Addr, Reason: e.Reason.Error()})
	told, more := v.refusals.count(time.Now())
	if !told {
		return
	}
	text := e.Reason.Error()
	if more > 0 {
		text += fmt.Sprintf(" (and %d more were refused since the last one that is shown)", more)
	}
	v.event(n, "refused", e.ID.String(), text)
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

func (v *view) dialled(n *node, addr string, err error) {
	if err == nil {
		delete(v.dials, addr)
		return
	}
	if len(v.dials) < maxDials {
		v.dials[addr] = err
	}
	n.log.Debug("dial", "addr", addr, "err", err)
}

// called counts the payload bytes that a call brought.
func (v *view) called(e gossip.Call, size int) {
	req, err := wire.DecodeRequest(e.Request)
	if err == nil && req.Kind == wire.GetPayload && size > 0 {
		v.payloadBytes += uint64(size - 1) // without the status
	}
}

// inline counts a payload that came inside a gossip message.
func (v *view) inline(msg wire.Message) { v.payloadBytes += uint64(len(msg.Inline)) }

// stored counts a delta of another that is now held.
func (v *view) stored(e core.StoreDelta) { v.payloadHeld += uint64(len(e.Payload)) }

// weightDecay is the weight of the past in the mean share of an author.
const weightDecay = 0.9

// folded records who contributed to the rounds of a fold, and with which weight.
func (v *view) folded(e replica.Folded) {
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

// adopted records what became of own deltas, and the moment at which the node's
// own work first counts.
func (v *view) adopted(n *node, a outer.Adopt) {
	v.returned[a.Fragment] += a.Tokens(outer.Returned)
	v.discarded[a.Fragment] += a.Tokens(outer.Discarded, outer.Dropped)
	v.discarded[a.Fragment] -= min(v.discarded[a.Fragment], a.Tokens(outer.Regained))
	mine := func(seq uint64) bool { return seq >= n.firstSeq }
	if v.joined.IsZero() && slices.ContainsFunc(a.Seqs(outer.Folded), mine) {
		v.joined = time.Now()
		v.event(n, "contributing", "", "first own delta is folded")
	}
}

// watch does what is due beside the run: a live evaluation, the notices of being alone and of folds that stay away.
func (n *node) watch() {
	if n.machine.View().Phase() == core.Ready { // before, tokens come with a snapshot
		n.view.speed.record(time.Now(), n.machine.View().FoldedTokens())
	}
	if n.machine.View().Alone() && len(n.cfg.Link.Peers) > 0 && !n.aloneSaid {
		n.aloneSaid = true
		n.view.event(n, "alone", "", n.aloneText())
	}
	n.watchFolds()
	n.evaluate()
	n.exports.export(n)
}

// aloneText says that nobody answers, and why as far as dials tell. A member alone goes on with the run. A guest closes no round,
// and its owner would take its steps for progress.
func (n *node) aloneText() string {
	text := "no peer of the link answers, training alone and dialling on"
	if n.members.Guest(n.self) {
		text = "no peer of the link answers, training alone (a guest's rounds close only beside a member) and dialling on"
	}
	if len(n.view.dials) > 0 {
		text += ": " + n.whyAlone(n.view.dials)
	}
	return text
}

// speedometer measures folded tokens per second over about a minute.
type speedometer struct {
	at     []time.Time
	tokens []uint64
}

// Samples are speedEvery apart and speedSamples are kept.
const (
	speedEvery   = time.Second
	speedSamples = 60
)

func (s *speedometer) record(at time.Time, tokens uint64) {
	if n := len(s.at); n > 0 && at.Sub(s.at[n-1]) < speedEvery {
		return
	}
	s.at, s.tokens = append(s.at, at), append(s.tokens, tokens)
	if len(s.at) > speedSamples {
		s.at, s.tokens = s.at[1:], s.tokens[1:]
	}
}

func (s *speedometer) perSecond() float64 {
	n := len(s.at)
	if n < 2 || s.tokens[n-1] <= s.tokens[0] {
		return 0
	}
	return float64(s.tokens[n-1]-s.tokens[0]) / s.at[n-1].Sub(s.at[0]).Seconds()
}
