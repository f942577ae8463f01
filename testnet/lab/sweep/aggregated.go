package sweep

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/testnet/baseline/lockstep"
)

// aggregatorsOfGroup is how many members of a group fetch its deltas and publish what they merge of them.
const aggregatorsOfGroup = 2

// lie is what liars multiply progress by: backwards, and ten times as far.
const lie = -10

// aggregation is a run whose learners wait for each other as DiLoCo's do, and whose outer step is atoll's own: outer.Learner
// drafts deltas, outer.Fold folds them. Between the two, aggregators may merge the deltas of groups, so that a fold has fewer
// of them. It shows what that costs the model, and nothing of times.
type aggregation struct {
	*bench
	run      lockstep.Run
	p        outer.Params // of the fold that all nodes make
	plan     outer.Plan   // one fragment
	tip      *outer.Tip
	levels   []*level // of merged deltas; none where everybody folds the deltas of all
	learners []*aggregated
}

// aggregated is a learner of an aggregation.
type aggregated struct {
	*trainer.Builtin
	outer   *outer.Learner
	pending uint64 // steps that it has not published
}

// level is what the groups of one size know beside the tip. Norms and agreement of deltas are another thing than those of
// deltas that are merged already.
type level struct {
	group   int          // members of a group
	p       outer.Params // of a group's fold
	out     codec.Kind   // of what it comes to
	ref     []float32
	records []outer.Reputation
}

// sizes of the groups, the first of deltas, the next of merged deltas.
func (s Setting) sizes() (sizes []int, err error) {
	for word := range strings.SplitSeq(s.Groups, ":") {
		if s.Groups == "" {
			return nil, nil
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 || n > maxLearners {
			return nil, fmt.Errorf("groups is %q; write the members of a group, 2 to %d, such as 8, or 4:4 for groups of groups", s.Groups, maxLearners)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// checkGroups refuses what no aggregation can be.
func (s Setting) checkGroups() error {
	if _, err := s.sizes(); err != nil {
		return err
	}
	if _, err := codec.Parse(cmp.Or(s.Regroup, s.Codec)); err != nil {
		return fmt.Errorf("regroup: %w", err)
	}
	switch {
	case s.Baseline != Aggregated && (s.Groups != "" || s.Regroup != "" || s.Liars != 0 || s.LiarGroups != 0):
		return fmt.Errorf("groups, regroup, liars and liargroups are for the arm %s", Aggregated)
	case s.LearnersPerRound < 0 || s.LearnersPerRound > s.M:
		return fmt.Errorf("answerers is %d; use 1 to the %d learners, or 0 for all", s.LearnersPerRound, s.M)
	case s.Liars < 0 || s.Liars > s.M || s.LiarGroups < 0 || s.LiarGroups > s.M:
		return fmt.Errorf("liars is %d and liargroups %d; use 0 to the %d learners", s.Liars, s.LiarGroups, s.M)
	}
	return nil
}

// aggregated runs it.
func (b *bench) aggregated(t *Trial) error {
	r, err := b.newAggregation()
	if err != nil {
		return err
	}
	for t.Trained < b.Tokens || r.pending() {
		if err := r.round(t); err != nil {
			return err
		}
	}
	t.PayloadPerToken /= float64(t.Folded)
	t.VirtualSteps = float64(t.Steps)
	return b.judge(t, r.global())
}

func (b *bench) newAggregation() (*aggregation, error) {
	p, err := b.params(1, b.Tokens)
	if err != nil {
		return nil, err
	}
	p.LearnersPerRound = cmp.Or(b.LearnersPerRound, b.M)
	r := &aggregation{bench: b, run: b.lockstep(b.H), p: p, plan: outer.NewPlan(tensor.Layout(b.specs()), 1)}
	r.tip = r.plan.Genesis(b.initial(), p)[0]
	for _, s := range b.shards {
		tr, err := b.newTrainer(b.Batch, s.text, s.author)
		if err != nil {
			return nil, err
		}
		// No payload is read back: a delta is in flight only within its round.
		r.learners = append(r.learners, &aggregated{Builtin: tr, outer: outer.NewLearner(p, r.plan, tr.Params(), []*outer.Tip{r.tip}, nil)})
	}
	return r, r.addLevels()
}

// addLevels gives each size of a group what its folds go by.
func (r *aggregation) addLevels() error {
	sizes, err := r.sizes()
	if err != nil {
		return err
	}
	out, err := codec.Parse(cmp.Or(r.Regroup, r.Codec))
	if err != nil {
		return err
	}
	for _, n := range sizes {
		p := r.p
		p.Eta, p.Mu = 1, 0 // a group's fold makes a delta of its deltas, and no step
		r.levels = append(r.levels, &level{group: n, p: p, out: out, ref: make([]float32, len(r.plan[0].Tensors)), records: []outer.Reputation{}})
		// A merged delta has the steps of all that are in it. The pace bounds what one learner makes.
		r.p.Codec, r.p.MaxSteps, r.p.MaxPace = out, outer.MaxStepsLimit, outer.MaxPaceLimit
	}
	return nil
}

// pending says whether a learner has steps that are not published.
func (r *aggregation) pending() bool {
	return slices.ContainsFunc(r.learners, func(l *aggregated) bool { return l.pending > 0 })
}

// round has all learners step, some of them publish, and all of them fold. After the last step those publish whose turn
// had not come.
func (r *aggregation) round(t *Trial) error {
	if err := r.step(t); err != nil {
		return err
	}
	called := r.called()
	drafts, set, err := r.draft(called)
	if err != nil {
		return err
	}
	for _, own := range drafts {
		t.Folded += own.Tokens
	}
	t.Deltas += len(set)
	for i, l := range r.levels {
		t.PayloadPerToken += bytesOf(set) * aggregatorsOfGroup
		if set, err = l.merge(r.plan[0], r.tip.Round+1, r.groups(set, l.group), i, r.liars(i)); err != nil {
			return err
		}
	}
	t.PayloadPerToken += bytesOf(set) * float64(r.M)
	tip, _, err := outer.Fold(r.p, r.plan[0], r.tip, r.tip.Round+1, set)
	if err != nil {
		return err
	}
	if len(r.levels) > 0 {
		tip.Reputations = []outer.Reputation{} // groups are drawn anew: what one was says nothing of the next
	}
	r.tip = tip
	if err := r.adopt(called, drafts); err != nil {
		return err
	}
	t.Rounds++
	return r.look(t.Folded, r.global)
}

// liars are the groups of a level whose aggregators all lie: of the last one alone.
func (r *aggregation) liars(level int) int {
	if level < len(r.levels)-1 {
		return 0
	}
	return r.LiarGroups
}

func bytesOf(set []outer.Contribution) float64 {
	n := 0
	for _, c := range set {
		n += c.Delta.Size
	}
	return float64(n)
}

// step has all learners take the steps of a round, or what is left of the budget.
func (r *aggregation) step(t *Trial) error {
	if t.Trained >= r.Tokens {
		return nil
	}
	steps := r.run.Steps(t.Trained, r.M)
	for i := range steps {
		rate := r.run.Rate(t.Trained, r.M, i)
		for _, l := range r.learners {
			if _, err := l.Step(context.Background(), rate); err != nil {
				return err
			}
			l.outer.Stepped(r.stepTokens(r.model), []uint32{r.tip.Round})
			l.pending++
		}
	}
	t.Trained += r.run.Tokens(t.Trained, r.M)
	t.Steps += int(steps)
	return nil
}

// called are the learners that publish in this round: as many as may, in a circle.
func (r *aggregation) called() (called []int) {
	n := cmp.Or(r.LearnersPerRound, r.M)
	for i := range n {
		called = append(called, (int(r.tip.Round)*n+i)%r.M)
	}
	slices.Sort(called)
	return slices.DeleteFunc(called, func(i int) bool { return r.learners[i].pending == 0 })
}

// draft makes the deltas of those that are called.
func (r *aggregation) draft(called []int) (drafts []outer.Own, set []outer.Contribution, err error) {
	for _, i := range called {
		d, err := r.learners[i].outer.Draft(0)
		if err != nil {
			return nil, nil, err
		}
		if i < r.Liars {
			if d.Payload, err = lieOf(d.Payload, r.plan[0].Len); err != nil {
				return nil, nil, err
			}
		}
		r.learners[i].pending -= uint64(d.Steps)
		drafts = append(drafts, outer.Own{Seq: d.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens})
		set = append(set, contribution(d.Payload, outer.Delta{
			Author: nameOf(0, i), Round: r.tip.Round + 1, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens,
		}))
	}
	return drafts, set, nil
}

// adopt brings all learners to the tip.
func (r *aggregation) adopt(called []int, drafts []outer.Own) error {
	for i, l := range r.learners {
		a := outer.Adopt{Tip: r.tip}
		if at, published := slices.BinarySearch(called, i); published {
			a.Changes = []outer.Change{{Own: drafts[at], Fate: outer.Folded}, {Own: drafts[at], Fate: outer.Forgotten}}
		}
		if err := l.outer.Adopt(a); err != nil {
			return err
		}
	}
	return nil
}

// groups draws the groups of a round, as nearly equal as they can be.
func (r *aggregation) groups(set []outer.Contribution, size int) (groups [][]outer.Contribution) {
	shuffled := slices.Clone(set)
	draw := rand.New(rand.NewPCG(r.seed, uint64(r.tip.Round)))
	draw.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	n := (len(set) + size - 1) / size
	for i := range n {
		groups = append(groups, shuffled[len(set)*i/n:len(set)*(i+1)/n])
	}
	return groups
}

// merge makes the merged deltas of groups. Those of the first liars are lies.
func (l *level) merge(f outer.Fragment, round uint32, groups [][]outer.Contribution, number, liars int) (set []outer.Contribution, err error) {
	refs, records := make([]float64, len(l.ref)), slices.Clone(l.records)
	for i, g := range groups {
		m, err := mergeGroup(l.p, f, l.ref, l.records, round, g, l.out)
		if err != nil {
			return nil, err
		}
		if i < liars {
			if m.payload, err = lieOf(m.payload, f.Len); err != nil {
				return nil, err
			}
		}
		m.delta.Author = nameOf(number+1, i)
		set = append(set, contribution(m.payload, m.delta))
		for t, x := range m.ref {
			refs[t] += float64(x) / float64(len(groups))
		}
		records = judged(records, m.records, round)
	}
	for t, x := range refs {
		l.ref[t] = float32(x)
	}
	l.records = records
	return set, nil
}

// merged is what an aggregator publishes of a group, and what the next round of its level has to know.
type merged struct {
	delta   outer.Delta
	payload []byte
	ref     []float32
	records []outer.Reputation
}

// mergeGroup folds the deltas of a group as a round's are folded, from global parameters of zeros: the new ones are their merged
// progress. That is encoded again. It is a pure function of its arguments, whatever the order of set, so all that hold the
// set make the same bytes. Steps and tokens are those of all, so that the weight of a merged delta is the sum of theirs.
func mergeGroup(p outer.Params, f outer.Fragment, ref []float32, records []outer.Reputation, round uint32, set []outer.Contribution, out codec.Kind) (m merged, err error) {
	prev := outer.Genesis(f, make([]float32, f.Len), p)
	prev.Round, prev.Ref, prev.Reputations = round-1, ref, records
	next, result, err := outer.Fold(p, f, prev, round, set)
	if err != nil {
		return m, err
	}
	if len(result.Refused) > 0 {
		return m, fmt.Errorf("a group's fold refused a delta: %w", result.Refused[0].Err)
	}
	m = merged{ref: next.Ref, records: next.Reputations, delta: outer.Delta{Round: round, Base: round - 1}}
	for _, c := range set {
		m.delta.Steps += c.Delta.Steps
		m.delta.Tokens += c.Delta.Tokens
		m.delta.Base = min(m.delta.Base, c.Delta.Base)
	}
	m.payload, err = codec.Encode(out, next.Global)
	return m, err
}

// judged takes over the records that a group's fold of a round has noted.
func judged(all, noted []outer.Reputation, round uint32) []outer.Reputation {
	for _, n := range noted {
		if n.Round != round {
			continue
		}
		i, found := slices.BinarySearchFunc(all, n, func(a, b outer.Reputation) int { return outer.CompareAuthors(a.Author, b.Author) })
		if !found {
			all = slices.Insert(all, i, n)
		}
		all[i] = n
	}
	return all
}

// contribution is a delta with its payload, which names it.
func contribution(payload []byte, d outer.Delta) outer.Contribution {
	d.Codec, d.Size = codec.Kind(payload[1]), len(payload)
	d.ID = d.Author
	binary.BigEndian.PutUint32(d.ID[16:], d.Round)
	return outer.Contribution{Delta: d, Payload: payload}
}

// nameOf is the name of learner i, or of a group of a level.
func nameOf(level, i int) outer.Author { return outer.Author{byte(level), byte(i >> 8), byte(i), 1} }

// lieOf is a payload of the opposite of what another says, ten times over.
func lieOf(payload []byte, n int) ([]byte, error) {
	kind, err := codec.KindOf(payload)
	if err != nil {
		return nil, err
	}
	v := make([]float32, n)
	if err := codec.Decode(payload, n, v); err != nil {
		return nil, err
	}
	for i := range v {
		v[i] *= lie
	}
	return codec.Encode(kind, v)
}

// global is the whole model in the order of the trainer.
func (r *aggregation) global() []float32 {
	params := slices.Clone(r.learners[0].Params())
	r.plan[0].Scatter(r.tip.Global, params)
	return params
}
