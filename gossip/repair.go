package gossip

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// repair reconciles the sets of this node and a peer that differ. Both sides run
// it, so both end with the union. Where the chains differ below what union can
// mend, or this node is far behind, it takes a snapshot instead; see fork.go.
type repair struct {
	*env
	certificates *certificates

	headers  *headers.Headers
	fetch    *fetch.Fetch
	snapshot *snapshot
	sessions []*session // at most maxRepairs, in order of beginning

	// weighed is what this node compares its own tokens with, of peers that show another
	// chain, once it has closed as much; see behindInTokens.
	weighed map[wire.PeerID]*wire.Heartbeat
}

// repairPeer is when the next repair with a peer may begin, and what there is to gain.
type repairPeer struct {
	after   Time
	pauseMs int64 // after the next fruitless one
	stalls  bool  // it did not answer the last one
	spent   int   // repairs in a row after which nothing more is to be had of the peer
	outran  int   // repairs in a row that left nothing out of what the peer had closed, and it shows digests of later rounds by now
}

func repairOf(p *peers.Peer) *repairPeer { return peers.Note[repairPeer](p) }

// session is one repair with one peer: ranges are compared, then the headers
// of differing rounds are fetched and their payloads pulled, batch after
// batch.
type session struct {
	peer        *peers.Peer
	until       Time
	fragments   []comparison
	ranges      []wire.Range    // still to compare
	todo        []wire.RoundKey // rounds that differ, still to fetch
	batch       []wire.RoundKey // rounds whose headers were asked for
	answered    bool            // the peer did, once or more
	reconciling bool            // decided to
	waiting     map[wire.Digest]uint16
	learned     int  // deltas that came of it, and closings
	brought     int  // of these, deltas
	lost        bool // one that is too old for gossip could not be had
}

// equal says that p shows the chain of this node.
func (r *repair) equal(p *peers.Peer) { repairOf(p).pauseMs = 0 }

// begin starts a repair with p without a pause, as want does.
func (r *repair) begin(p *peers.Peer) {
	repairOf(p).after = r.Now
	r.want(p)
}

// want starts a repair with p unless there is one, too many, or a pause, or one of the two
// is paused by its owner.
func (r *repair) want(p *peers.Peer) {
	if r.Paused || !r.Usable(p) || p.Pauses() || r.Now < repairOf(p).after || r.snapshot.busy() || r.find(p) != nil || !r.makeRoom(p) {
		return
	}
	s := &session{peer: p, until: r.Now + repairTtlMs, waiting: map[wire.Digest]uint16{}}
	r.sessions = append(r.sessions, s)
	r.Event(EventRepair, p.ID, "compares rounds")
	r.plan(s)
	r.compareNext(s)
}

// rank orders peers by what is to be had of repairs with them: those that are known come first,
// then strangers, then those that did not answer the last time.
func (r *repair) rank(p *peers.Peer) int {
	switch {
	case repairOf(p).stalls:
		return 2
	case r.Stranger(p.ID):
		return 1
	}
	return 0
}

// makeRoom reports whether there is a slot for a repair with p: a free one, or the one of the last
// in rank of those that give way to p.
func (r *repair) makeRoom(p *peers.Peer) bool {
	if len(r.sessions) < maxRepairs {
		return true
	}
	var last *session
	for _, s := range r.sessions {
		if r.givesWay(s, p) && (last == nil || r.rank(s.peer) > r.rank(last.peer)) {
			last = s
		}
	}
	if last == nil {
		return false
	}
	r.end(last, "ended: gives way to a peer that more can be fetched from")
	return true
}

// givesWay reports whether a repair ends for one with p. One in which nothing was answered does for each peer that comes
// before. One with a guest does for every known peer: keys are free to guests, and drops of answers could hold all slots.
// Other strangers keep theirs, as what an honest newcomer made comes this way.
func (r *repair) givesWay(s *session, p *peers.Peer) bool {
	return r.Guest(s.peer.ID) && r.Known(p.ID) || !s.answered && r.rank(s.peer) > r.rank(p)
}

func (r *repair) find(p *peers.Peer) *session {
	for _, s := range r.sessions {
		if s.peer == p {
			return s
		}
	}
	return nil
}

func (r *repair) active(s *session) bool { return slices.Contains(r.sessions, s) }

// ask sends a request of the session and ends it on failure. then returns an
// error for an answer that no honest peer gives.
func (r *repair) ask(s *session, q wire.Request, then func(body []byte) error) {
	r.Call(s.peer.ID, q, q.Kind.MaxResponse(), effect.CallMs, func(body []byte, err error) {
		if !r.active(s) {
			return
		}
		if repairOf(s.peer).stalls = err != nil && !errors.Is(err, wire.ErrBusy) && r.Usable(s.peer); err != nil {
			r.stalled(s)
			r.end(s, fmt.Sprintf("ended: %v", err))
			return
		}
		s.answered = true
		if err := then(body); err != nil {
			r.Misbehaved(s.peer.ID, err.Error())
			r.end(s, "ended: "+err.Error())
		}
	})
}

// decide takes a snapshot or goes on with the union.
func (r *repair) decide(s *session) {
	d := r.judge(s)
	if d.course == takeSnapshot && !r.trusted(s.peer) {
		d = decision{wait, d.reason + "; but this node never folded a delta of this peer, and too few contributors confirm it"}
	}
	if d.reason != "" {
		r.Event(EventFork, s.peer.ID, d.reason)
		r.Emit(BaseMismatch{Peer: s.peer.ID, Take: d.course == takeSnapshot, Reason: d.reason})
	}
	switch d.course {
	case takeSnapshot:
		r.end(s, "takes a snapshot instead")
		r.snapshot.fetch(s.peer.ID, true)
	case giveSnapshot:
		for f := range s.fragments {
			s.fragments[f].partial = true // what they have is taken, not followed
		}
		r.reconcile(s)
	case wait:
		r.end(s, "waits: neither takes anything of the other")
	case reconcile:
		r.reconcile(s)
	}
}

// reconcile fetches the differing rounds, the oldest of all fragments first.
func (r *repair) reconcile(s *session) {
	s.reconciling = true
	slices.SortStableFunc(s.todo, func(a, b wire.RoundKey) int { return cmp.Compare(a.Round, b.Round) })
	r.nextBatch(s)
}

// nextBatch asks for the headers of the next rounds, or ends the repair.
func (r *repair) nextBatch(s *session) {
	n := min(repairBatch, len(s.todo))
	if n == 0 {
		r.finish(s)
		return
	}
	s.batch = slices.Clone(s.todo[:n])
	s.todo = s.todo[n:]
	r.ask(s, wire.Request{Kind: wire.GetHeaders, Rounds: s.batch}, func(body []byte) error {
		headers, err := wire.DecodeHeaders(body)
		if err != nil {
			return err
		}
		if err := r.verify(s, headers); err != nil {
			return err
		}
		r.resolve(s, headers, nil)
		return nil
	})
}

// verify refuses headers that were not asked for, and those that nobody signed.
func (r *repair) verify(s *session, headers []wire.SignedHeader) error {
	for _, h := range headers {
		key := wire.RoundKey{Fragment: h.Header.Fragment, Round: h.Header.Round}
		if !slices.Contains(s.batch, key) {
			return fmt.Errorf("%w: header of fragment %d round %d was not asked for", wire.ErrInvalid, key.Fragment, key.Round)
		}
		if err := r.cfg.VerifyHeader(h); err != nil {
			return err
		}
	}
	return nil
}

// resolve asks the peer for the certificates that headers name and that are not known here, each once,
// and then takes the headers. Where the peer has none either, as in an equivocation proof against one that made it
// up, nobody is to blame: such a delta is not taken.
func (r *repair) resolve(s *session, headers []wire.SignedHeader, asked []wire.Digest) {
	q := r.certificates.lacking(headers, asked)
	if len(q.Certificates) == 0 {
		r.accept(s, headers)
		return
	}
	add := r.cfg.Members.AddHeld
	if r.Guest(s.peer.ID) {
		add = r.cfg.Members.Add // keys are free to guests: what they hold must fit
	}
	r.ask(s, q, func(body []byte) error {
		if err := r.certificates.accept(body, q, add); err != nil {
			return err
		}
		r.resolve(s, headers, append(asked, q.Certificates...))
		return nil
	})
}

// accept wants what is missing of a batch of headers and goes on when it is all held.
func (r *repair) accept(s *session, headers []wire.SignedHeader) {
	s.requeue(headers)
	r.conform(s, headers)
	wanted := map[wire.RoundKey]bool{}
	for _, h := range headers {
		key := wire.RoundKey{Fragment: h.Header.Fragment, Round: h.Header.Round}
		wanted[key] = r.acceptOne(s, &h) || wanted[key]
	}
	for _, key := range s.batch {
		s.lost = s.lost || !wanted[key] && !slices.Contains(s.todo, key) && r.keptApart(s, key)
	}
	s.batch = nil
	r.goOn(s)
}

// conform has a guest leave out of closed rounds what guests made and a member does not hold. Members take of that what comes in
// time, and then bring it: what came late here, the own delta as well, is of no round.
func (r *repair) conform(s *session, headers []wire.SignedHeader) {
	if !r.Guest(r.cfg.Self) || r.Guest(s.peer.ID) {
		return
	}
	holds := func(h wire.SignedHeader) bool {
		return slices.ContainsFunc(headers, func(x wire.SignedHeader) bool { return x.Header == h.Header })
	}
	for _, key := range s.batch {
		f := int(key.Fragment)
		theirs := s.fragments[f].theirs
		if key.Round <= theirs.Base || key.Round > theirs.Closed || slices.Contains(s.todo, key) {
			continue // a member may know nothing of rounds below its base
		}
		for _, h := range r.chain.Signed(f, key.Round) {
			if r.cfg.Members.GuestHeader(h.Header) && !holds(h) {
				r.Emit(LeaveOut{ID: h.Header.ID(r.cfg.Run), Fragment: f, Round: key.Round})
			}
		}
	}
}

// requeue puts back the rounds that a long answer may have been cut before:
// those after the last round in it. A server cuts only what would not fit, so
// an answer less than half full is whole.
func (s *session) requeue(headers []wire.SignedHeader) {
	if len(headers) < wire.MaxHeaders-serve.MaxRoundHeaders {
		return
	}
	last := headers[len(headers)-1].Header
	i := slices.Index(s.batch, wire.RoundKey{Fragment: last.Fragment, Round: last.Round})
	s.todo = append(slices.Clone(s.batch[i+1:]), s.todo...)
}

// leaves reports whether a repair does not take a header: what admits its author is not known, or a guest brings the delta of
// a guest. That one comes by gossip, or from a member.
func (r *repair) leaves(s *session, h *wire.SignedHeader) bool {
	return r.unknown(*h) || r.cfg.Members.GuestHeader(h.Header) && r.Guest(s.peer.ID)
}

// acceptOne wants the payload of a verified header that the peer holds. It reports whether this node lacks it.
func (r *repair) acceptOne(s *session, h *wire.SignedHeader) (lacks bool) {
	if r.leaves(s, h) {
		return true
	}
	c := &s.fragments[h.Header.Fragment]
	id, v := r.headers.Classify(h)
	if v == headers.Refused {
		c.partial = true
	}
	if v == headers.Refused || v == headers.Conflict || r.chain.Has(id) || r.headers.Invalid(id) || r.headers.Other(id, h.Header) != nil {
		return v == headers.Refused
	}
	r.Emit(Offer{ID: id, Header: h, From: s.peer.ID, Repair: true})
	s.waiting[id] = h.Header.Fragment
	if !r.fetch.Want(id, h, s.peer.ID) {
		delete(s.waiting, id)
		c.partial = true
	}
	r.fetch.Listed(id, s.peer.ID)
	return true
}

// keptApart reports whether an equivocation proof may keep the two sides apart in a round in which
// their sets differ: the peer folded it below its base, one of a pair with it, and can leave
// nothing out any more.
func (r *repair) keptApart(s *session, key wire.RoundKey) bool {
	paired := func(h wire.SignedHeader) bool { return r.headers.Other(h.Header.ID(r.cfg.Run), h.Header) != nil }
	return key.Round <= s.fragments[key.Fragment].theirs.Base && slices.ContainsFunc(r.chain.Signed(int(key.Fragment), key.Round), paired)
}

// completed goes on with the repairs that waited for a payload.
func (r *repair) completed(id wire.Digest, how fetch.Outcome) {
	for _, s := range slices.Clone(r.sessions) {
		f, ok := s.waiting[id]
		if !ok {
			continue
		}
		delete(s.waiting, id)
		switch how {
		case fetch.Held:
			s.learned++
			s.brought++
		case fetch.Missing:
			s.misses(f, r.tooOld(id))
		}
		r.goOn(s)
	}
}

// goOn asks for the next batch while the last payloads are on their way: the link is not idle meanwhile. After the last
// one it ends the repair.
func (r *repair) goOn(s *session) {
	if s.batch == nil && (len(s.waiting) == 0 || len(s.todo) > 0 && len(s.waiting) <= repairAhead) {
		r.nextBatch(s)
	}
}

// misses says that something that the peer listed is not to be had.
func (s *session) misses(fragment uint16, tooOld bool) {
	s.fragments[fragment].partial = true
	s.lost = s.lost || tooOld
}

// tooOld reports whether gossip no longer brings a delta that was met.
func (r *repair) tooOld(id wire.Digest) bool {
	v := r.headers.Find(id)
	return v != nil && r.headers.Old(v.Header.Header)
}

// finish tells the outer side how far it may close. A guest closes nothing for others.
func (r *repair) finish(s *session) {
	r.countOutrun(s)
	for f, c := range s.fragments {
		round := c.lastClosed()
		if !c.partial && round > r.chain.Closed(f) && !r.Guest(s.peer.ID) {
			r.Emit(CatchUp{Peer: s.peer.ID, Fragment: f, Round: round})
			s.learned++
		}
	}
	if s.lost || s.learned == 0 && r.atRest(s.peer) {
		repairOf(s.peer).spent++
	} else {
		repairOf(s.peer).spent = 0
	}
	r.end(s, fmt.Sprintf("done, %d things learned", s.learned))
}

// countOutrun counts the repairs that left nothing out of what the peer had closed, though the peer
// shows digests of later rounds by now. A peer that is farther ahead than deltas are taken is to be
// followed first.
func (r *repair) countOutrun(s *session) {
	if ahead, later := r.aheadAfter(s); later && ahead <= r.cfg.WindowAccept {
		repairOf(s.peer).outran++
	} else {
		repairOf(s.peer).outran = 0
	}
}

// aheadAfter is by how many rounds of some fragment the peer of a whole repair is ahead at most, and whether it shows rounds
// that it had not closed then.
func (r *repair) aheadAfter(s *session) (ahead uint32, later bool) {
	if s.peer.Heartbeat == nil {
		return 0, false
	}
	for f, shown := range peers.Lagged(s.peer.Heartbeat.Closed, s.peer.Heartbeat.Lag) {
		c, closed := &s.fragments[f], r.chain.Closed(f)
		if c.partial {
			return 0, false
		}
		ahead = max(ahead, shown-min(shown, closed))
		later = later || shown > max(closed, c.lastClosed())
	}
	return ahead, later
}

// atRest reports whether neither side trains: what they hold is all that there is. The lag of an observer is what others
// say, and a liar says for ever that more is to come. So an observer believes each peer that has stopped.
func (r *repair) atRest(p *peers.Peer) bool {
	mine := r.heartbeats.Said()
	if mine == nil || p.Heartbeat == nil || p.Heartbeat.Lag > 0 {
		return false
	}
	return mine.Lag == 0 || r.heartbeats.Self().Watches() && p.Heartbeat.State == wire.Stopped
}

// end closes a session. One that brought nothing doubles the pause before the
// next with this peer. One that brought deltas is soon followed by another: where rounds
// are short the peer has closed more by now than gossip brings to who is behind.
func (r *repair) end(s *session, text string) {
	i := slices.Index(r.sessions, s)
	r.sessions = slices.Delete(r.sessions, i, i+1)
	p := s.peer
	p.Recount()
	if s.learned > 0 {
		repairOf(p).pauseMs = 0
	}
	repairOf(p).pauseMs = min(max(2*repairOf(p).pauseMs, r.HeartbeatPeriod()), repairBackoffMaxMs)
	repairOf(p).after = r.Now + repairOf(p).pauseMs
	if s.brought > 0 {
		repairOf(p).after = r.Now + r.HeartbeatPeriod()/fruitfulParts
	}
	r.Event(EventRepair, p.ID, text)
}

// stalled has the next repair with a peer that did not answer wait for as long as the answer was
// awaited: it may lack the time.
func (r *repair) stalled(s *session) {
	if repairOf(s.peer).stalls {
		repairOf(s.peer).pauseMs = max(repairOf(s.peer).pauseMs, effect.CallMs/2) // which end doubles
	}
}

// tick ends sessions whose peer is gone or that do not get on.
func (r *repair) tick() {
	r.forgetWeighed()
	for _, s := range slices.Clone(r.sessions) {
		switch {
		case !r.Usable(s.peer):
			r.end(s, "ended: peer is gone")
		case r.Now > s.until:
			r.end(s, "ended: took too long")
		case s.reconciling && r.outrun(s):
			r.end(s, "ended: the peer's window is past what this node has closed")
		default:
			r.despair(s)
		}
	}
}

// despair has a repair wait no longer for payloads that its peer does not have, by authors that did not give what they
// announced recently. They are asked for all the same, but whoever withholds them answers nobody, and holds up no repair of
// others.
func (r *repair) despair(s *session) {
	if len(s.waiting) == 0 {
		return
	}
	for id, f := range s.waiting {
		if r.fetch.Doubts(id, s.peer.ID) {
			s.misses(f, r.tooOld(id))
			delete(s.waiting, id)
		}
	}
	r.goOn(s)
}

// outrun reports whether the peer has closed so much since a repair began that it
// has nothing more to give for it: what this node needs now is a snapshot.
func (r *repair) outrun(s *session) bool {
	for f := range s.fragments {
		if uint64(s.peer.Closed(f)) > uint64(r.chain.Closed(f))+uint64(r.cfg.WindowUnion) {
			return true
		}
	}
	return false
}
