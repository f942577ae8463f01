package rounds

import "atoll/optimizer/outer"

// Account says where the work of a learner on one fragment went. Every step taken, and every own
// delta restored from disk, is in exactly one column.
type Account struct {
	Pending   outer.Work // not published
	InFlight  outer.Work // published, neither folded nor returned
	Folded    outer.Work // in the tip, or final in its chain
	Discarded outer.Work // dropped or discarded (see outer.Fate), or lost
}

// Total is the sum of all columns.
func (a Account) Total() (t outer.Work) {
	for _, w := range []outer.Work{a.Pending, a.InFlight, a.Folded, a.Discarded} {
		t.Add(w)
	}
	return t
}

// account are the columns of work that comes back no more.
type account struct {
	folded, discarded outer.Work
}

// Account is where the work of this process's learner went.
func (v View) Account() Account {
	f := v.f
	a := Account{
		Pending: f.learn.unpublished(),
		Folded:  f.account.folded, Discarded: f.account.discarded,
	}
	for _, o := range f.own.list {
		switch {
		case o.folded:
			a.Folded.Add(o.Work())
		case o.gone:
			a.Discarded.Add(o.Work())
		default:
			a.InFlight.Add(o.Work())
		}
	}
	return a
}

func (l *learning) unpublished() outer.Work {
	return outer.Work{Steps: uint64(l.pending), Tokens: l.unsent}
}

// spend takes work off what is unpublished, as far as it is there, and returns that.
func (l *learning) spend(w outer.Work) outer.Work {
	w = w.Min(l.unpublished())
	l.pending -= uint32(w.Steps)
	l.unsent -= w.Tokens
	return w
}

// lose enters unpublished work that the learner lost into its column.
func (f *fragment) lose(w outer.Work) {
	f.account.discarded.Add(f.learn.spend(w))
}

// forget enters an own delta that is final into its column.
func (f *fragment) forget(d ownDelta) {
	if d.folded {
		f.account.folded.Add(d.Work())
	} else {
		f.account.discarded.Add(d.Work())
	}
}
