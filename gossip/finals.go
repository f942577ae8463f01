package gossip

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"atoll/gossip/finality"
	"atoll/gossip/wire"
)

// Finality is what a Core needs to vote on what is final. What an earlier process knew comes with it.
type Finality struct {
	Chain  finality.Chain
	Every  uint32   // rounds between two values, see finality.Every
	StepMs int64    // finality.Config.StepMs
	Gate   VoteGate // is told who votes; nil if nobody asks it

	Last    *finality.Certificate // the newest, nil for none
	Shorts  []uint64              // ShortOf each certificate's value, by height
	Saved   *finality.State       // of the last SaveVotes, nil for none
	Abstain bool                  // this node signs nothing before VoteFrom
}

// VoteGate bounds the votes that a node takes from gossip: finality.Gate, or what wraps one.
type VoteGate interface {
	// Set says who votes, and at which height. It may come often with the same ones.
	Set(height uint32, table finality.Table)
}

// ShortOf is the digest of a certificate's value as beats name it.
func ShortOf(run wire.RunID, c finality.Certificate) uint64 {
	d := c.Value.Digest(run)
	return binary.BigEndian.Uint64(d[:])
}

// Effects of votes.
type (
	// SaveVotes makes durable, in one step, what this node must remember of its votes (nothing new if State
	// is nil) and certificates that it has learned. What follows from them leaves the node after VotesSaved alone.
	SaveVotes struct {
		State        []byte
		Certificates []finality.Certificate
	}

	// ReplyFinals answers with the certificates of a height and those above it, as many as fit (wire.EncodeFinals).
	ReplyFinals struct {
		Handle uint64
		Height uint32
	}

	// Certified says that a certificate is durable here.
	Certified struct{ Certificate finality.Certificate }

	// VotedTwice proves that a voter signed two different votes of one phase and view.
	VotedTwice struct{ Proof finality.DoubleVote }
)

func (SaveVotes) effect()   {}
func (ReplyFinals) effect() {}
func (Certified) effect()   {}
func (VotedTwice) effect()  {}

// finals has this node vote, and fetches the votes and certificates that it lacks. What it signs spreads once by
// gossip, which drops equal bytes that come again. Whoever missed a vote finds it by asking a peer for all votes that
// it lacks, one peer each step.
type finals struct {
	*env
	voter   *finality.Voter // nil in a run without finality
	abstain bool            // Finality.Abstain
	next    Time            // look at the voter then

	shorts []uint64 // by height, of the certificates that are durable
	save   finalsSave
	said   map[wire.Vote]bool // own votes of this height that are durable and went out
	pulls  finalsPull
	fetch  finalsFetch
}

// finalsSave is what is to be made durable, and what waits for that.
type finalsSave struct {
	state  []byte                 // nil if nothing is new
	certs  []finality.Certificate // that are not durable
	votes  []wire.SignedVote      // own ones that go out afterwards
	flying *SaveVotes             // under way; its votes are the first waits of votes
	waits  int
	after  Time // not before, as the disk could not take it
}

// finalsPull is whom to ask for votes next.
type finalsPull struct {
	at Time
	of wire.PeerID // asked last
}

// finalsFetch is what was fetched of certificates that this node, which has none, cannot take yet. Of the certificates of a
// long run it keeps the first one and the newest: once it has taken the first it fetches all others again, for good.
type finalsFetch struct {
	busy   bool
	after  Time
	of     wire.PeerID           // asked last
	first  *finality.Certificate // of height 0
	newest []finality.Certificate
}

// keep takes a certificate that follows from the ones before.
func (t *finalsFetch) keep(c finality.Certificate) {
	if t.first == nil {
		t.first = &c
	}
	if len(t.newest) >= maxPendingFinals {
		t.newest = slices.Delete(t.newest, 0, len(t.newest)-maxPendingFinals+1)
	}
	t.newest = append(t.newest, c)
}

// last is the newest certificate that waits, nil if none does.
func (t *finalsFetch) last() *finality.Certificate {
	if n := len(t.newest); n > 0 {
		return &t.newest[n-1]
	}
	return nil
}

// pending is how many certificates wait.
func (t *finalsFetch) pending() uint32 {
	if c := t.last(); c != nil {
		return c.Height + 1
	}
	return 0
}

func (t *finalsFetch) forget() { t.first, t.newest = nil, nil }

// finalsPeer is what finals knows of a peer.
type finalsPeer struct {
	other uint64 // Beat.Certificate of certificates that do not follow from those here
	any   bool   // there are such
	asks  quota
}

func newFinals(e *env) finals {
	f := finals{env: e, said: map[wire.Vote]bool{}}
	cfg := e.cfg.Finality
	if cfg == nil {
		return f
	}
	voter := finality.Config{Run: e.cfg.Run, Key: e.cfg.Key, Every: cfg.Every, StepMs: cfg.StepMs}
	if cfg.Abstain {
		voter.From = math.MaxUint32
	}
	f.voter = finality.New(voter, cfg.Chain)
	f.voter.Resume(cfg.Last, cfg.Saved)
	f.shorts, f.abstain = slices.Clone(cfg.Shorts), cfg.Abstain
	return f
}

func (f *finals) tick() {
	if f.voter == nil || f.now < f.next {
		return
	}
	f.next = f.now + max(1, f.cfg.Finality.StepMs/ticksPerStep)
	f.voter.Tick(f.now)
	f.takePending()
	f.settle()
	f.seek()
	f.ask()
}

// settle does what the voter wants done.
func (f *finals) settle() {
	for _, e := range f.voter.Effects() {
		switch e := e.(type) {
		case finality.Save:
			f.save.state = e.State.Encode()
		case finality.Publish:
			f.publish(e.Vote)
		case finality.Certified:
			f.save.certs = append(f.save.certs, e.Certificate)
			clear(f.said)
		case finality.Doubled:
			f.emit(VotedTwice{e.Proof})
		}
	}
	f.write()
	if gate := f.cfg.Finality.Gate; gate != nil {
		gate.Set(f.voter.Height(), f.voter.Voters())
	}
}

// publish spreads a vote that did not go out before. What a voter repeats, peers get when they ask.
func (f *finals) publish(s wire.SignedVote) {
	if s.Author == f.cfg.Self && !f.said[s.Vote] && !slices.Contains(f.save.votes, s) {
		f.save.votes = append(f.save.votes, s)
	}
}

// write has what is new made durable, one thing after the other, and lets out votes that are durable.
func (f *finals) write() {
	s := &f.save
	if s.flying != nil || f.now < s.after {
		return
	}
	if s.state != nil || len(s.certs) > 0 {
		s.flying, s.waits = &SaveVotes{State: s.state, Certificates: s.certs}, len(s.votes)
		s.state, s.certs = nil, nil
		f.emit(*s.flying)
		return
	}
	f.say(len(s.votes))
}

// say publishes the first own votes that wait.
func (f *finals) say(n int) {
	for _, v := range f.save.votes[:n] {
		f.said[v.Vote] = v.Height == f.voter.Height()
		f.emit(Publish{Bytes: wire.EncodeVote(v)})
	}
	f.save.votes = slices.Delete(f.save.votes, 0, n)
}

// saved says what came of the last SaveVotes.
func (f *finals) saved(err error) {
	s := &f.save
	if s.flying == nil {
		return
	}
	done := *s.flying
	s.flying = nil
	if err != nil {
		if s.state == nil {
			s.state = done.State
		}
		s.certs, s.votes = append(done.Certificates, s.certs...), nil // the voter repeats what it signed
		s.after = f.now + f.cfg.Finality.StepMs
		return
	}
	for _, c := range done.Certificates {
		f.shorts = append(f.shorts, ShortOf(f.cfg.Run, c))
		f.emit(Certified{c})
	}
	f.say(s.waits)
	f.write()
}

// received takes a vote that gossip brought.
func (f *finals) received(s wire.SignedVote) {
	if f.voter == nil {
		return
	}
	f.voter.Receive(f.now, s)
	f.settle()
}

// voteFrom lets a node vote that abstained, above all heights that are under way as far as it knows: it may have
// signed something there.
func (f *finals) voteFrom() {
	if f.voter == nil || !f.abstain {
		return
	}
	f.abstain = false
	f.voter.VoteFrom(max(f.voter.Height(), f.underWay()) + 1)
}

// underWay is the highest height that somebody is at, by beats. Nodes are hardly apart, so one that claims far more than
// half of them counts as a little ahead: it must not silence others.
func (f *finals) underWay() uint32 {
	var heights []uint32
	for _, p := range f.peers.list {
		if p.beat != nil && p.beat.Certified > 0 {
			heights = append(heights, p.beat.Certified)
		}
	}
	if len(heights) == 0 {
		return 0
	}
	slices.Sort(heights)
	highest, middle := heights[len(heights)-1], heights[(len(heights)-1)/2]
	return min(highest, min(middle, math.MaxUint32-1-heightsApart)+heightsApart)
}

// tell adds to a beat what this node knows to be final.
func (f *finals) tell(b *wire.Beat) {
	n := len(f.shorts)
	if f.voter == nil || n == 0 {
		return
	}
	b.Certified, b.Certificate = uint32(n), f.shorts[n-1]
	if uint32(n) == f.voter.Height() {
		b.BorneOut = f.voter.Bears()
	}
}

// following returns the peer after the one asked last, in order of id, that may be asked.
func (f *finals) following(last wire.PeerID, may func(p *peer) bool) (first *peer) {
	for _, p := range f.peers.linked {
		if !f.usable(p) || p.roster.record.Stateless || !may(p) {
			continue
		}
		if p.id.Compare(last) > 0 {
			return p
		}
		if first == nil {
			first = p
		}
	}
	return first
}

// ask asks a peer for the votes of this height that it has and this node lacks.
func (f *finals) ask() {
	if f.now < f.pulls.at || !f.voter.Voting() && !f.voter.Astray() {
		return
	}
	f.pulls.at = f.now + f.cfg.Finality.StepMs
	height := f.voter.Height()
	p := f.following(f.pulls.of, func(p *peer) bool { return p.beat != nil && p.beat.Certified == height })
	if p == nil {
		return
	}
	f.pulls.of = p.id
	known := map[uint64]bool{}
	q := wire.Request{Kind: wire.GetVotes, Height: height}
	for _, s := range f.voter.Votes(wire.MaxKnownVotes, func(wire.SignedVote) bool { return false }) {
		q.Known = append(q.Known, s.Short())
		known[s.Short()] = true
	}
	slices.Sort(q.Known)
	f.call(p.id, q, q.Kind.MaxResponse(), callMs, func(body []byte, err error) {
		if err == nil {
			f.cameVotes(p.id, body, height, known)
		}
	})
}

// cameVotes takes votes that a peer has. Those that are known already cost no check.
func (f *finals) cameVotes(from wire.PeerID, body []byte, height uint32, known map[uint64]bool) {
	votes, err := wire.DecodeVotes(body)
	for _, s := range votes {
		if _, votes := f.voter.Voters().Place(s.Author); !votes || s.Height != f.voter.Height() || s.Height != height || known[s.Short()] {
			continue
		}
		if err = s.Verify(f.cfg.Run); err != nil {
			break
		}
		f.voter.Receive(f.now, s)
	}
	if err != nil {
		f.misbehaved(from, err.Error())
	}
	f.settle()
}

// votes answers a request for votes.
func (f *finals) votes(q wire.Request) []byte {
	if q.Height != f.voter.Height() {
		return wire.EncodeVotes(nil)
	}
	known := map[uint64]bool{}
	for _, short := range q.Known {
		known[short] = true
	}
	return wire.EncodeVotes(f.voter.Votes(wire.MaxVotes, func(s wire.SignedVote) bool {
		return s.Author == f.cfg.Self && !f.said[s.Vote] || known[s.Short()]
	}))
}

// standing says which of two chains that do not unite is certified.
type standing uint8

const (
	undecided    standing = iota // no certificate tells
	oursStands                   // this node's chain goes through certificates, and the peer's through none that follow
	theirsStands                 // the other way round
	awaitsFinals                 // one of the two has more certificates, which the other has yet to fetch
)

// stand compares what the last beats of this node and of a peer say of certificates, as the peer does, which comes to
// the opposite. A certified chain stands beside one of a peer that has no certificate, but only where the chains differ in
// what both know: else the peer may be younger than the certificates, or back from a long sleep. Certificates that do
// not follow from each other are of groups that never met: then nothing is decided here.
func (f *finals) stand(mine *wire.Beat, p *peer, differ bool) standing {
	theirs := p.beat
	if f.voter == nil || mine == nil || theirs == nil || mine.Certified+theirs.Certified == 0 {
		return undecided
	}
	ours, other := mine.Certified > 0 && mine.BorneOut == wire.BearsYes, theirs.Certified > 0 && theirs.BorneOut == wire.BearsYes
	switch {
	case (mine.Certified == 0 || theirs.Certified == 0) && !differ:
		return undecided
	case mine.Certified == 0 || theirs.Certified == 0:
		return standingOf(ours, other)
	case mine.Certified > theirs.Certified && f.shorts[theirs.Certified-1] == theirs.Certificate:
		return awaitsFinals
	case mine.Certified < theirs.Certified && !(p.finals.any && p.finals.other == theirs.Certificate):
		return awaitsFinals
	case mine.Certified != theirs.Certified || mine.Certificate != theirs.Certificate:
		return undecided
	case mine.BorneOut == wire.BearsUnknown || theirs.BorneOut == wire.BearsUnknown:
		return undecided
	}
	return standingOf(ours, other)
}

// standingOf tells which of two chains stands, if one alone does.
func standingOf(ours, theirs bool) standing {
	switch {
	case ours && !theirs:
		return oursStands
	case theirs && !ours:
		return theirsStands
	}
	return undecided
}

// certified is how many certificates the chain of a peer goes through, as it says.
func (p *peer) certified() uint32 {
	if p.beat == nil || p.beat.BorneOut != wire.BearsYes {
		return 0
	}
	return p.beat.Certified
}

// lacks is the first height whose certificate is not here.
func (f *finals) lacks() uint32 { return f.voter.Height() + f.fetch.pending() }

// seek fetches certificates from a peer that has more.
func (f *finals) seek() {
	height := f.lacks()
	if f.fetch.busy || f.now < f.fetch.after {
		return
	}
	p := f.following(f.fetch.of, func(p *peer) bool {
		return p.beat != nil && p.beat.Certified > height && !(p.finals.any && p.finals.other == p.beat.Certificate)
	})
	if p == nil {
		return
	}
	f.fetch.busy, f.fetch.of, f.fetch.after = true, p.id, f.now+f.cfg.Finality.StepMs
	q := wire.Request{Kind: wire.GetFinals, Height: height}
	f.call(p.id, q, q.Kind.MaxResponse(), callMs, func(body []byte, err error) {
		f.fetch.busy = false
		if err == nil {
			f.cameFinals(p, body, height)
		}
	})
}

// cameFinals takes certificates from a height on. Those that do not follow from what is known here may be of nodes
// that this one never met, so nobody is to blame.
func (f *finals) cameFinals(p *peer, body []byte, height uint32) {
	items, err := wire.DecodeFinals(body)
	if err != nil {
		f.misbehaved(p.id, err.Error())
		return
	}
	var list []finality.Certificate
	for i, item := range items {
		c, err := finality.Parse(item)
		if err == nil && c.Height != height+uint32(i) {
			err = errors.New("certificates of other heights than were asked for")
		}
		if err != nil {
			f.misbehaved(p.id, err.Error())
			return
		}
		list = append(list, c)
	}
	if height != f.lacks() {
		return // others came meanwhile
	}
	if len(list) > 0 && f.takes(list) {
		if f.fetch.first == nil && f.voter.Last() == nil {
			return // the own chain goes elsewhere
		}
		f.fetch.after = min(f.fetch.after, f.now+1000/maxFinalsPerSecond) // there may be more
		return
	}
	p.finals.any = true
	if p.beat != nil {
		p.finals.other = p.beat.Certificate
	}
}

// takes reports whether certificates follow from those that are known. A node that has none keeps them until its own
// chain bears one of them out, or most vouch for them.
func (f *finals) takes(list []finality.Certificate) bool {
	if f.voter.Last() != nil {
		err := f.voter.Learn(f.now, list)
		f.settle()
		return err == nil
	}
	for _, c := range list {
		if c.Verify(f.cfg.Run, f.fetch.last()) != nil {
			f.fetch.forget() // these may be the true ones
			return false
		}
		f.fetch.keep(c)
	}
	f.takePending()
	return true
}

// takePending takes the certificates that wait once the own chain goes through one of them, or most say that theirs do, and
// forgets them if the own chain goes elsewhere.
func (f *finals) takePending() {
	if f.fetch.first == nil {
		return
	}
	first, newest := *f.fetch.first, f.fetch.newest
	switch verdict := f.borneOut(); {
	case f.voter.Last() != nil:
	case verdict == wire.BearsNo:
		f.fetch.after = f.now + againSteps*f.cfg.Finality.StepMs
	case verdict == wire.BearsYes || f.vouched():
		if err := f.voter.Begin(f.now, first); err == nil && newest[0].Height <= first.Height+1 {
			_ = f.voter.Learn(f.now, newest) // all are here, and were verified
		}
	default:
		return
	}
	f.fetch.forget()
	f.settle()
}

// borneOut reports whether the own chain comes to the value of a certificate that waits. It does not if it goes elsewhere
// at one and comes to none.
func (f *finals) borneOut() wire.Bears {
	verdict := wire.BearsUnknown
	for _, c := range f.fetch.newest {
		yes, known := finality.BornOut(f.cfg.Finality.Chain, f.cfg.Run, c)
		if known && yes {
			return wire.BearsYes
		}
		if known {
			verdict = wire.BearsNo
		}
	}
	return verdict
}

// vouched reports whether more than two thirds of the live peers whose deltas were folded here say that their chains go
// through a certificate that waits. A node that took tips may be a voter of a height, and its own chain may never tell
// of the certificate before: without its vote there would be no other.
func (f *finals) vouched() bool {
	peers, yes := f.poll(func(p *peer) bool { return f.chain.Contributed(p.id) }, func(p *peer) bool {
		i := int(p.certified()) - 1 - int(f.fetch.newest[0].Height)
		return i >= 0 && i < len(f.fetch.newest) && ShortOf(f.cfg.Run, f.fetch.newest[i]) == p.beat.Certificate
	})
	return 3*yes > 2*peers
}

// VotesSaved says what became of the last SaveVotes.
func (c *Core) VotesSaved(now Time, err error) {
	c.at(now)
	if c.finals.voter != nil {
		c.finals.saved(err)
	}
}

// VoteFrom ends Finality.Abstain: this node knows as much of what it signed as it ever will. It leaves out the heights
// that are under way.
func (c *Core) VoteFrom(now Time) {
	c.at(now)
	c.finals.voteFrom()
}

// FinalView is how far what is final got.
type FinalView struct {
	Certified uint32                // certificates that are durable here
	Last      *finality.Certificate // the newest, nil for none
	BorneOut  wire.Bears            // whether the own chain goes through it
	Pending   int                   // certificates that wait until the own chain, or most peers, bear one of them out
	Voters    int                   // at the height under way, 0 if they are not known
	Votes     bool                  // this node is one of them
	Silent    []wire.PeerID         // of whom no vote came at this height
	View      uint32                // attempt at the height
}

// Finals returns how far what is final got; ok is false in a run without finality.
func (c *Core) Finals() (v FinalView, ok bool) {
	f := &c.finals
	if f.voter == nil {
		return v, false
	}
	table := f.voter.Voters()
	_, votes := table.Place(c.cfg.Self)
	return FinalView{
		Certified: uint32(len(f.shorts)), Last: f.voter.Last(), BorneOut: f.voter.Bears(), Pending: int(f.fetch.pending()),
		Voters: table.Len(), Votes: votes, Silent: f.voter.Silent(), View: f.voter.View(),
	}, true
}
