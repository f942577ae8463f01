package testnet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/tensor"
)

// report makes the report of a world whose nodes have ended.
func (w *world) report(ctx context.Context) (Report, error) {
	w.screen.say("the run is over; reading the ledgers and evaluating")
	ref, c, err := w.reference()
	if err != nil {
		return Report{}, fmt.Errorf("account: %w (the world is in %s)", err, w.cfg.Dir)
	}
	a, err := w.account(ref, c)
	if err != nil {
		return Report{}, err
	}
	r := w.describe()
	if r.Trace, err = w.traceOf(); err != nil {
		return Report{}, err
	}
	w.fillAccount(&r, a)
	w.ended = runEnd(ref)
	w.fillTimes(&r, a, w.ended)
	w.fillTraffic(&r)
	r.NodesReport = w.nodeReports(a, r.TokensFolded)
	if err := w.fillQuality(ctx, &r); err != nil {
		return Report{}, err
	}
	r.Checks = w.checks(r, a)
	r.DirBytes, r.Temporary = folderSize(w.cfg.Dir), w.temporary
	r.Page = w.path(PageFile)
	return r, errors.Join(r.save(w.path(reportFile)), w.savePage(&r))
}

func (w *world) describe() Report {
	run := w.genesis.RunID()
	name, sum := w.data.label()
	return Report{
		Setup: Setup{
			Baseline: w.cfg.Baseline, Link: strings.Join(w.cfg.Link, " "), Nodes: w.cfg.Nodes, Model: w.cfg.Model, Params: w.genesis.Model.Params(),
			Optimizer: w.genesis.Inner.Optimizer, Seed: w.genesis.Seed,
			Data: name, SHA256: sum, Dir: w.cfg.Dir, Run: hex.EncodeToString(run[:]),
		},
		Tokens: Tokens{TokensBudget: w.genesis.Outer.Budget}, Calibration: w.calibration,
		Faults: Faults{
			Joins: w.counts.joins, Leaves: w.counts.leaves, Kills: w.counts.kills,
			Pauses: w.counts.pauses, Partitions: w.counts.partitions, Corruptions: len(w.corrupted), Links: w.counts.links,
			Learners: w.counts.learners, Liars: w.counts.liars,
		},
	}
}

func (w *world) fillAccount(r *Report, a account) {
	t := a.totals()
	r.TokensTrained, r.TokensFolded, r.TokensReturned = t.trained, t.folded, t.returned
	r.TokensDiscarded, r.TokensLostHere, r.TokensUnpublished, r.TokensLost = t.discarded, t.lostHere, t.unpublished, t.lost
	r.Rounds, r.Deltas = a.chain.rounds(), a.chain.deltas
	for _, l := range w.lives() {
		r.Late += l.last.Account.Late
		r.Refused += l.last.Account.Refused
	}
}

// lives are all processes that said how they were.
func (w *world) lives() (out []*life) {
	for _, m := range w.members {
		for _, l := range m.lives {
			if l.seen {
				out = append(out, l)
			}
		}
	}
	return out
}

// runEnd is when a node saw that the run was over.
func runEnd(ref *member) time.Time {
	l := ref.newest()
	for _, e := range l.last.Events {
		if e.Kind == "finished" {
			return e.At
		}
	}
	return l.ended
}

func (w *world) fillTimes(r *Report, a account, end time.Time) {
	w.fillWall(r, end)
	r.Goodput, r.GoodputUp = w.goodput(a, end)
}

// fillWall fills in how long the run and its recoveries took.
func (w *world) fillWall(r *Report, end time.Time) {
	r.WallS = end.Sub(w.began).Seconds()
	r.Progress = w.progress.points
	if r.WallS > 0 {
		r.TokensPerS = float64(r.TokensFolded) / r.WallS
	}
	r.EndIdleS, r.EndDeltasS = w.idleAtEnd()
	r.RecoverS, r.MergeS, r.WakeS = w.restarts(), w.took(merges), w.took(wakes)
	r.LearnerS = w.took(relearns)
	for _, m := range w.members {
		if s := m.lives[0].last.JoinS; m.joiner && s > 0 {
			r.JoinS = append(r.JoinS, s)
		}
	}
}

// idleAtEnd is how long the learner that waited longest at the end had nothing to step, and
// what the last deltas took there.
func (w *world) idleAtEnd() (idle, deltas *float64) {
	var worst, took float64
	for _, m := range w.survivors() {
		if s := m.newest().last; s.Time.Ending > worst {
			worst, took = s.Time.Ending, s.LastDeltasS
		}
	}
	return measured(worst), measured(took)
}

// goodput is the seconds of steps whose tokens were folded, over the seconds
// from each node's planned start to the end of the run or its ordered leave, without those
// for which its owner had it paused. It also returns the same over the seconds that processes lived.
func (w *world) goodput(a account, end time.Time) (planned, up *float64) {
	return w.goodputOf(end, func(i int) float64 {
		e := a.entries[i]
		if e.trained == 0 {
			return 0
		}
		return float64(a.chain.mean(func(p int) uint64 { return e.folded[p] })) / float64(e.trained)
	})
}

// goodputOf is goodput where share says which part of a node's steps is in the model.
func (w *world) goodputOf(end time.Time, share func(node int) float64) (planned, up *float64) {
	var useful, all, alive float64
	for i, m := range w.members {
		until := end
		if l := m.newest(); l.asked && l.ended.Before(end) {
			until = l.ended
		}
		all += until.Sub(m.planned).Seconds()
		stepping := 0.0
		for _, l := range m.lives {
			stepping += l.last.Time.Step + l.last.Time.Paced
			alive += earlier(l.ended, end).Sub(l.began).Seconds() - l.last.Time.Paused
			all -= l.last.Time.Paused
		}
		useful += stepping * share(i)
	}
	if all <= 0 || alive <= 0 {
		return nil, nil
	}
	return measured(useful / all), measured(useful / alive)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (w *world) fillTraffic(r *Report) {
	var payload, held uint64
	for _, l := range w.lives() {
		r.BytesSent += l.last.Net.SentBytes
		r.BytesReceived += l.last.Net.ReceivedBytes
		payload += l.last.Account.PayloadBytes
		held += l.last.Account.PayloadHeld
		for _, p := range l.last.Peers {
			r.HeartbeatGapS = max(r.HeartbeatGapS, p.HeartbeatGapS)
		}
	}
	if r.TokensFolded > 0 {
		r.BytesPerToken = float64(r.BytesReceived) / float64(r.TokensFolded)
	}
	r.PayloadBytes = payload
	if held > 0 {
		r.Amplification = measured(float64(payload) / float64(held))
	}
}

// nodeReports has a row for each node of the world and each guest.
func (w *world) nodeReports(a account, folded uint64) (rows []NodeReport) {
	for i, e := range a.entries {
		row := NodeReport{Name: e.name, ID: hex.EncodeToString(e.author[:]), Role: "learner"}
		row.TokensFolded = a.chain.mean(func(p int) uint64 { return e.folded[p] })
		row.Tokens = a.chain.mean(e.made)
		row.TokensReturned = a.chain.mean(func(p int) uint64 { return e.returned[p] })
		row.TokensDiscarded = a.chain.mean(func(p int) uint64 { return e.discarded[p] })
		row.TokensLost = a.chain.mean(func(p int) uint64 { return uint64(max(0, e.leftOver(p))) })
		if folded > 0 {
			row.Share = float64(row.TokensFolded) / float64(folded)
		}
		if i < len(w.members) {
			w.members[i].describe(&row)
			w.describeLink(w.members[i], &row)
		}
		rows = append(rows, row)
	}
	return rows
}

// describe fills in what only the node itself knows.
func (m *member) describe(row *NodeReport) {
	l := m.newest()
	row.Divisor, row.End = m.divisor, l.end()
	for _, l := range m.lives {
		row.Lives = append(row.Lives, Life{Began: l.began, Ended: l.ended, Killed: l.killed})
	}
	if !l.seen {
		return
	}
	row.Role, row.RSSBytes = l.last.Role, measured(l.last.RSSBytes)
	row.Time = m.timeAccount()
	for _, l := range m.lives {
		row.Planned = max(row.Planned, l.plan)
	}
	for _, p := range l.last.Peers {
		if p.Self {
			row.TokensPerS, row.Upload = measured(p.TokensPerS), measured(p.Upload)
			row.Capability = &Capability{
				Hardware: p.Hardware, Trainer: p.Trainer, Precision: p.Precision,
				TokensPerS: measured(p.MeasuredPerS), TokensPerStep: p.TokensPerStep,
			}
		}
	}
}

// timeAccount adds up the processes of a node.
func (m *member) timeAccount() *status.TimeAccount {
	var sum status.TimeAccount
	for _, l := range m.lives {
		t := l.last.Time
		sum.Step += t.Step
		sum.Paced += t.Paced
		sum.Publish += t.Publish
		sum.Adopt += t.Adopt
		sum.Save += t.Save
		sum.Waiting += t.Waiting
		sum.Joining += t.Joining
		sum.Ending += t.Ending
		sum.Gone += t.Gone
		sum.Data += t.Data
		sum.Paused += t.Paused
		sum.Asleep += t.Asleep
		sum.Total += t.Total
	}
	return &sum
}

// maxEvaluation bounds the final evaluation, in parameters times bytes: about a
// minute on two cores. The held-out part of the prose is a fiftieth of it for
// tiny; the held-out part of the Go code is ten times too much for small.
const maxEvaluation = 3e12

// fillQuality compares what the nodes hold and evaluates it on the whole
// held-out part.
func (w *world) fillQuality(ctx context.Context, r *Report) error {
	survivors := w.survivors()
	first := survivors[0].newest().last
	r.ChainDigest, r.StateDigest, r.ChainEqual, r.DigestsEqual = first.ChainDigest, first.StateDigest, true, true
	var model *tensor.Slab
	var bits [sha256.Size]byte
	for i, m := range survivors {
		s := m.newest().last
		_, slab, _, err := inspect.LoadModel(ctx, m.dir)
		if err != nil {
			return err
		}
		if i == 0 {
			model, bits = slab, slabSum(slab)
		}
		r.ChainEqual = r.ChainEqual && s.ChainDigest == r.ChainDigest
		r.DigestsEqual = r.DigestsEqual && s.StateDigest == r.StateDigest && slabSum(slab) == bits
	}
	r.TrainLoss = meanLoss(survivors)
	return w.fillModel(ctx, r, model)
}

// fillModel evaluates a model on the whole held-out part or, where that would take longer than
// anybody waits, on a sample of it; the report has its bytes.
func (w *world) fillModel(ctx context.Context, r *Report, model *tensor.Slab) error {
	if w.cfg.NoEval {
		return nil
	}
	q, err := w.data.measure(ctx, w.genesis, model, maxEvaluation/float64(w.genesis.Model.Params()))
	if err != nil {
		return err
	}
	r.ValBPB, r.ValBytes = &q.bits, q.bytes
	return nil
}

// slabSum is a hash of the bits of a model on this machine.
func slabSum(p *tensor.Slab) [sha256.Size]byte {
	b := make([]byte, 0, 4*len(p.Data))
	for _, x := range p.Data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return sha256.Sum256(b)
}

// meanLoss is the mean training loss of the learners among some nodes, in nats
// per token.
func meanLoss(members []*member) *float64 {
	var sum, n float64
	for _, m := range members {
		if loss := m.newest().last.TrainLoss; loss > 0 {
			sum, n = sum+loss, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return measured(sum / n)
}
