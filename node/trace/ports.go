package trace

import (
	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Wrap returns a replica's configuration whose ports tell the Recorder what passes
// through them. A Recorder that is nil changes nothing.
func (r *Recorder) Wrap(cfg replica.Config) replica.Config {
	if r == nil {
		return cfg
	}
	cfg.Ledger = ledger{cfg.Ledger, r}
	cfg.Net = network{cfg.Net, r}
	cfg.Watcher = watcher{cfg.Watcher, r}
	return cfg
}

// Learner is a learner that tells the Recorder of its drafts; nil stays nil.
func (r *Recorder) Learner(l replica.Learner) replica.Learner {
	if r == nil || l == nil {
		return l
	}
	return learner{l, r}
}

type learner struct {
	replica.Learner
	r *Recorder
}

// Draft implements replica.Learner.
func (l learner) Draft(fragment int) (outer.Draft, error) {
	var began int64
	l.r.at(func(now int64) { began = now })
	d, err := l.Learner.Draft(fragment)
	if err == nil {
		l.r.at(func(int64) { l.r.drafts[d.Seq] = began })
	}
	return d, err
}

// Return implements replica.Learner.
func (l learner) Return(fragment int, o outer.Own) error {
	l.r.at(func(int64) { delete(l.r.drafts, o.Seq) })
	return l.Learner.Return(fragment, o)
}

type ledger struct {
	replica.Ledger
	r *Recorder
}

// PutOwn implements replica.Ledger.
func (l ledger) PutOwn(e core.StoreOwn) error {
	err := l.Ledger.PutOwn(e)
	if err == nil {
		l.r.at(func(now int64) { l.r.durable(now, e) })
	}
	return err
}

// PutDelta implements replica.Ledger.
func (l ledger) PutDelta(id wire.Digest, h *wire.SignedHeader, payload []byte) error {
	err := l.Ledger.PutDelta(id, h, payload)
	if err == nil {
		l.r.at(func(now int64) { l.r.verified(now, id) })
	}
	return err
}

type network struct {
	replica.Net
	r *Recorder
}

// Publish implements replica.Net.
func (n network) Publish(message []byte) {
	if m, err := wire.Decode(message); err == nil && m.Header != nil {
		n.r.at(func(now int64) { n.r.announced(now, m.Header.Header.ID(n.r.cfg.Run)) })
	}
	n.Net.Publish(message)
}

// Call implements replica.Net.
func (n network) Call(e gossip.Call) {
	if q, err := wire.DecodeRequest(e.Request); err == nil && q.Kind == wire.GetPayload {
		n.r.at(func(now int64) { n.r.asked(now, e, q.Digest) })
	}
	n.Net.Call(e)
}

type watcher struct {
	replica.Watcher
	r *Recorder
}

// Saw implements replica.Watcher.
func (w watcher) Saw(event any) {
	w.r.at(func(now int64) { w.r.saw(now, event) })
	w.Watcher.Saw(event)
}

func (r *Recorder) saw(now int64, event any) {
	switch e := event.(type) {
	case gossip.Offer:
		r.heard(now, e)
	case replica.PayloadOnDisk:
		r.stored(now, e.ID)
	case rounds.Closed:
		r.closed(now, e)
	case replica.TipFolded:
		r.folded(now, e)
	case replica.Adopted:
		r.adopted(now, e.Adopt)
		r.fates(now, e.Adopt)
	case replica.Installed:
		r.installed(e)
	case core.Refused:
		r.refused(e)
	}
}
