package replica

import (
	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// saveVotes makes durable what this node signs; only then do its votes leave.
func (r *Replica) saveVotes(e gossip.SaveVotes) {
	err := r.ledger.PutVotes(e.State, e.Certificates)
	r.watcher.Check("keep votes", err)
	done := func(now core.Time) { r.machine.VotesSaved(now, err) }
	if err == nil {
		r.exec.Announce(done)
	} else {
		r.exec.Post(done)
	}
}

// replyFinals serves certificates. One that the disk has damaged ends the answer.
func (r *Replica) replyFinals(e gossip.ReplyFinals) {
	r.exec.Serve(e.Handle, func(func() bool) {
		list, err := r.ledger.Finals(e.Height, wire.MaxFinals)
		r.watcher.Check("read certificates", err)
		r.exec.Post(func(core.Time) {
			r.net.Reply(e.Handle, Reply{Response: wire.Found(wire.EncodeFinals(list))})
		})
	})
}
