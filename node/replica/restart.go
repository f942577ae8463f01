package replica

import (
	"fmt"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Restored is what a ledger had of a run.
type Restored struct {
	Tips  []*outer.Tip // to begin with: of each fragment the newest base, or genesis
	Saved []core.Saved // nil if there was nothing
	Next  uint64       // above the numbers of all own deltas
}

// Marked says whether the ledger knows of a round that this key signed.
func (s Restored) Marked() bool {
	for _, f := range s.Saved {
		if f.Mark > 0 {
			return true
		}
	}
	return false
}

// New makes the replica over what its ledger holds. The machine is made by Start.
func New(cfg Config) (*Replica, Restored, error) {
	r := &Replica{
		params: cfg.Machine.Params, plan: cfg.Machine.Plan, key: cfg.Machine.Key, run: cfg.Machine.Run,
		self: wire.PeerIDOf(cfg.Machine.Key), policy: cfg.Policy, genesis: cfg.Genesis,
		exec: cfg.Exec, ledger: cfg.Ledger, net: cfg.Net, arithmetic: cfg.Arithmetic, watcher: cfg.Watcher, blobs: cfg.Blobs, scratch: cfg.Scratch,
		waiting: unrecorded{}, chunksAt: cfg.Exec.Elapsed(),
	}
	var err error
	if r.bases, err = newBases(r.ledger, r.policy, r.genesis.Tips, r.watcher.Check, len(r.plan)); err != nil {
		return nil, Restored{}, err
	}
	if err := r.loadMembers(cfg.Machine.Gossip.Members); err != nil {
		return nil, Restored{}, err
	}
	was := Restored{Tips: r.genesis.Tips()}
	disk := &restartDisk{Ledger: r.ledger, r: r, was: &was}
	if was.Saved, err = core.Load(disk, r.self, r.params, was.Tips, cfg.Machine.Gossip.Members); err != nil {
		return nil, was, err
	}
	for p, s := range was.Saved {
		was.Tips[p] = s.Tip
		if s.Bases[0] > 0 { // no fold begins at round 0 any more
			r.watcher.Check("drop base", r.bases.drop(p, 0))
		}
		for _, o := range s.Own {
			r.own.put(o.Seq, wire.Digest(o.Delta.ID))
		}
	}
	for p, tip := range was.Tips {
		r.bases.keep(p, tip)
	}
	return r, was, nil
}

// Start makes the machine, and puts it and the learner back to what the ledger had.
// The learner is nil for a node that only holds and serves.
func (r *Replica) Start(now core.Time, cfg core.Config, was Restored, l Learner) error {
	r.machine = core.New(cfg, was.Tips)
	r.learning = learning{learner: l, closed: make([]uint32, len(was.Tips))}
	for p, tip := range was.Tips {
		r.learning.closed[p] = tip.Round
	}
	r.credit(r.authors())
	if was.Saved == nil {
		return nil
	}
	equivocation, err := r.ledger.Equivocation()
	if err != nil {
		return err
	}
	for _, e := range equivocation {
		r.machine.Equivocation(now, e)
	}
	for p, s := range was.Saved {
		folded, err := r.machine.Restore(now, p, s.Restored, s.Headers)
		if err == nil && l != nil {
			err = l.Restore(p, seqs(s.Own), folded)
		}
		if err != nil {
			return fmt.Errorf("restore fragment %d: %w", p, err)
		}
	}
	return nil
}

// loadMembers makes those known again whose certificates were kept, and keeps those that are known
// already, the own one. One that does not fit the run any more is left out: its author shows it anew.
func (r *Replica) loadMembers(members *member.Table) error {
	if members == nil {
		return nil
	}
	kept, err := r.ledger.Members()
	if err != nil {
		return err
	}
	for _, c := range members.All() {
		if !slices.Contains(kept, c) {
			r.watcher.Check("store a certificate", r.ledger.PutMember(c))
		}
	}
	for _, c := range kept {
		_, err := members.AddHeld(c)
		r.watcher.Check("take up a certificate", err)
	}
	words, err := r.ledger.Revocations()
	for _, w := range words {
		_, err := members.AddWords(w)
		r.watcher.Check("take up a revocation", err)
	}
	return err
}

func seqs(own []rounds.OwnDelta) (seqs []uint64) {
	for _, o := range own {
		seqs = append(seqs, o.Seq)
	}
	return seqs
}

// restartDisk is a ledger as a restart reads it.
type restartDisk struct {
	Ledger
	r   *Replica
	was *Restored
}

// Base reads a kept tip and keeps it in memory.
func (d *restartDisk) Base(fragment int, round uint32) *outer.Tip {
	tip, err := d.r.bases.get(fragment, round)
	if d.r.watcher.Check("load base", err); err != nil {
		return nil
	}
	return tip
}

// DropBase drops a kept tip from memory and disk.
func (d *restartDisk) DropBase(fragment int, round uint32) error {
	return d.r.bases.drop(fragment, round)
}

// Own records the numbers of the own deltas of earlier processes.
func (d *restartDisk) Own() ([]core.OwnRecord, error) {
	own, err := d.Ledger.Own()
	for _, o := range own {
		d.was.Next = max(d.was.Next, o.Seq+1)
	}
	return own, err
}

// LostOwn says whether the payload of an own delta cannot be read, and then forgets
// that the delta is an own one.
func (d *restartDisk) LostOwn(o core.OwnRecord) (bool, error) {
	_, err := d.Ledger.Payload(o.ID)
	if !isGone(err) {
		return false, err
	}
	d.r.exec.Post(func(core.Time) {
		d.r.watcher.Saw(Damaged{fmt.Errorf("own %w: %w (%d tokens)", err, ErrOwnLost, o.Header.Tokens)})
	})
	return true, d.Ledger.LoseOwn(o.ID)
}
