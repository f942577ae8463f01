package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// ErrTwin says that the node's key is at work in another process. Two of them
// would sign two deltas for one round, and the run would bar both.
var ErrTwin = p2p.ErrTwin

// twinError names the remedy. says is who or what tells of the other process.
func twinError(says string) error {
	return fmt.Errorf("%w (%s); stop that one, or give this one a folder without its key file", ErrTwin, says)
}

// Times of listening for a twin.
const (
	// echoMs is how long after its start a process takes beats of another one
	// for those of the process that it follows: gossip repeats messages for five
	// seconds after their author died.
	echoMs = 10_000
	// listenBeats is for how many beat periods a node that has reached others
	// listens before it trains: in one of them a twin speaks.
	listenBeats = 2
	// listenMaxMs ends that whatever is heard: in so long a living twin has shown
	// something new, and whoever plays recorded beats must not keep a node from
	// training.
	listenMaxMs = 3 * echoMs
)

// twinwatch tells from the beats of this node's own key whether another process
// is at work with it. Beats can be recorded, or come late by way of a peer that
// slept, so that one says nothing by itself. What proves that its author lives
// are more folded tokens than the run had when this process caught up with it.
type twinwatch struct {
	self    int64     // start of this process, unix milliseconds
	began   core.Time // the same by the node's clock
	up      core.Time // when the first peer was reached; 0 = not yet
	from    core.Time // when it was first ready to train, but for listening; 0 = not yet
	in      bool      // this process has listened long enough, and is at work
	caught  bool      // it has caught up with the run
	known   uint64    // tokens that were folded by then
	other   int64     // start of the other process that was heard last; 0 = none
	heardAt core.Time // when that was
}

func (w *twinwatch) peerUp(now core.Time) {
	if w.up == 0 {
		w.up = now
	}
}

// follow notes how many tokens this node has folded until it has caught up with
// the run: equal says that a live peer shows the same digests.
func (w *twinwatch) follow(now core.Time, folded uint64, equal bool) {
	if !w.caught {
		w.known = max(w.known, folded)
		w.caught = equal && now-w.began >= echoMs
	}
}

// beat takes a beat of another process and reports whether that one lives and is
// at work. One that still listens finds out about this one by itself; of two that
// listen the later does.
func (w *twinwatch) beat(now core.Time, b wire.Beat) bool {
	listens := b.State == wire.Joining && (w.in || b.Incarnation > w.self)
	if listens || b.State == wire.Leaving {
		return false
	}
	w.other, w.heardAt = b.Incarnation, now
	return w.caught && b.Folded > w.known
}

// listen reports whether this process has listened long enough: nobody to listen
// to is long enough. It is asked once everything else is ready. beatMs is the
// beat period.
func (w *twinwatch) listen(now core.Time, beatMs int64) bool {
	if w.up != 0 && w.from == 0 {
		w.from = now
	}
	if w.up == 0 || now-max(w.up, w.heardAt) >= listenBeats*beatMs || now-w.from >= listenMaxMs {
		w.in = true
	}
	return w.in
}

// ends reports whether this process, not the other one that lives, has to end:
// the one that only listens yet, or the later.
func (w *twinwatch) ends() bool { return !w.in || w.other < w.self }

// twins is what the loop knows of other processes with this key.
type twins struct {
	twinwatch
	may     bool // what the machine says of stepping
	allowed bool // what the training thread was told
	said    bool // that there is another process
}

// allow lets the training thread step if the machine does, but not before the
// node has listened for a twin: without a step it signs nothing.
func (n *node) allow(now core.Time) {
	t := &n.twins
	if !t.caught {
		equal, _ := n.machine.Gossip().Chains().Equal(now)
		t.follow(now, n.machine.FoldedTokens(), equal)
	}
	yes := n.machine.Phase() == core.Ready && t.listen(now, n.machine.Gossip().BeatPeriodMs()) && t.may
	if n.train != nil && yes != t.allowed {
		t.allowed = yes
		n.train.setMay(yes)
	}
}

// heardTwin takes a beat of another process with this key.
func (n *node) heardTwin(now core.Time, b wire.Beat) {
	if !n.twins.beat(now, b) {
		return
	}
	if n.twins.ends() {
		n.fatal = twinError("its beats are heard, it runs since " + time.UnixMilli(b.Incarnation).Format(time.DateTime))
		return
	}
	if !n.twins.said {
		n.twins.said = true
		n.view.event(n, "twin", n.self.String(), "another process runs with this node's key: copy folders without their key file")
	}
}

// refusedAsTwin ends the process if a peer that the user named, in the link or
// by its address, is connected to another one with its key. Other peers may say
// what they like, those among them that an earlier start met.
func (n *node) refusedAsTwin(addr string, err error) {
	if !errors.Is(err, p2p.ErrTwin) {
		return
	}
	id, bad := p2p.PeerIDOf(addr)
	if bad == nil && (slices.Contains(n.named, id) || slices.Contains(peerIDs(n.cfg.Peers), id)) {
		n.fatal = twinError(addr + " is connected to it")
	}
}
