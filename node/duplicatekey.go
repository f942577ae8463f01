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

// ErrDuplicateKey says that the node's key is at work in another process. Two of them
// would sign two deltas for one round, and the run would exclude both.
var ErrDuplicateKey = p2p.ErrDuplicateKey

// duplicateKeyError names the remedy. says is how this process knows of the other.
func duplicateKeyError(says string) error {
	return fmt.Errorf("%w (%s); stop that one, or give this one a folder without its key file", ErrDuplicateKey, says)
}

// Times of listening for another process with this key.
const (
	// echoMs is how long after its start a process takes heartbeats with its key for
	// echoes of the process before it. Gossip repeats messages for five seconds
	// after their author died.
	echoMs = 10_000
	// listenHeartbeats is for how many heartbeat periods a node that has reached others
	// listens before it trains. Another process speaks in one of them.
	listenHeartbeats = 2
	// listenMaxMs ends the listening, whatever is heard. A living process has
	// shown something new by then; recorded heartbeats must not keep a node from
	// training.
	listenMaxMs = 3 * echoMs
)

// keyWatch tells from heartbeats with this node's own key whether another process is at
// work with it. A heartbeat alone proves nothing: it can be recorded, or come late from
// a peer that slept. Its author lives if it shows more folded tokens than the run
// had when this process caught up with it.
type keyWatch struct {
	self    int64     // start of this process, unix milliseconds
	began   core.Time // the same by the node's clock
	up      core.Time // when the first peer was reached; 0 = not yet
	from    core.Time // when only listening kept it from training; 0 = not yet
	in      bool      // this process has listened long enough, and is at work
	caught  bool      // it has caught up with the run
	known   uint64    // tokens that were folded by then
	other   int64     // start of the other process that was heard last; 0 = none
	heardAt core.Time // when that was
}

func (w *keyWatch) peerUp(now core.Time) {
	if w.up == 0 {
		w.up = now
	}
}

// follow records how many tokens this node has folded until it has caught up with
// the run: equal says that a live peer shows the same digests.
func (w *keyWatch) follow(now core.Time, folded uint64, equal bool) {
	if !w.caught {
		w.known = max(w.known, folded)
		w.caught = equal && now-w.began >= echoMs
	}
}

// heartbeat takes a heartbeat of another process and reports whether that process lives and
// is at work. A process that still listens finds out by itself; of two that listen
// the later one does.
func (w *keyWatch) heartbeat(now core.Time, b wire.Heartbeat) bool {
	listens := b.State == wire.Joining && (w.in || b.Incarnation > w.self)
	if listens || b.State == wire.Leaving {
		return false
	}
	w.other, w.heardAt = b.Incarnation, now
	return w.caught && b.Folded > w.known
}

// listen reports whether this process has listened long enough. It need not listen
// while no peer is there. Ask once everything else is ready. heartbeatMs is the heartbeat
// period.
func (w *keyWatch) listen(now core.Time, heartbeatMs int64) bool {
	if w.up != 0 && w.from == 0 {
		w.from = now
	}
	if w.up == 0 || now-max(w.up, w.heardAt) >= listenHeartbeats*heartbeatMs || now-w.from >= listenMaxMs {
		w.in = true
	}
	return w.in
}

// ends reports which of two living processes has to end, true for this one: the
// one that only listens yet, or the later one.
func (w *keyWatch) ends() bool { return !w.in || w.other < w.self }

// duplicate is what the loop knows of other processes with this key.
type duplicate struct {
	keyWatch
	may     bool // what the machine says of stepping
	allowed bool // what the training thread was told
	said    bool // that there is another process
}

// allow lets the training thread step if the machine does and the node has
// listened for another process with its key. Without a step it signs nothing.
func (n *node) allow(now core.Time) {
	t := &n.duplicate
	if !t.caught {
		equal, _ := n.machine.Gossip().Chains().Equal(now)
		t.follow(now, n.machine.View().FoldedTokens(), equal)
	}
	yes := n.machine.View().Phase() == core.Ready && t.listen(now, n.machine.Gossip().HeartbeatPeriodMs()) && t.may
	if n.train != nil && yes != t.allowed {
		t.allowed = yes
		n.train.SetMay(yes)
	}
}

// heardDuplicate takes a heartbeat of another process with this key.
func (n *node) heardDuplicate(now core.Time, b wire.Heartbeat) {
	if !n.duplicate.heartbeat(now, b) {
		return
	}
	if n.duplicate.ends() {
		n.fatal = duplicateKeyError("its heartbeats are heard; it started at " + time.UnixMilli(b.Incarnation).Format(time.DateTime))
		return
	}
	if !n.duplicate.said {
		n.duplicate.said = true
		n.screen.Alarm("duplicate key", n.self.String(), "another process runs with this node's key", "end one of the two, and copy folders without their key file")
	}
}

// refusedAsDuplicate ends the process if a peer says that another process with its
// key is connected to it. Only peers that the user named, in the link or by their
// address, are believed. Peers that an earlier start met are not.
func (n *node) refusedAsDuplicate(peer wire.PeerID, name string, err error) {
	if errors.Is(err, p2p.ErrDuplicateKey) && (slices.Contains(n.named, peer) || slices.Contains(peerIDs(n.cfg.Peers), peer)) {
		n.fatal = duplicateKeyError(name + " is connected to it")
	}
}
