package outer

import (
	"errors"
	"math"
	"slices"
	"testing"

	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// learnerModel is what a Learner promises, kept by other means: U as the sum of what steps changed
// and codecs lost, the local parameters by their definition, and the tokens that are pending.
type learnerModel struct {
	t       *rapid.T
	p       Params
	plan    Plan
	local   []float32 // what the trainer steps
	device  *modelDevice
	l       *Learner
	tips    []*Tip
	closed  []uint32
	disk    map[uint64][]byte // payload by seq
	own     []map[uint64]*modelOwn
	u       [][]float64 // but for what is held
	held    [][]float64 // with the sparse codec
	pending []uint64
	steps   uint64
	lag     []uint64 // steps from the draft of the last own delta that was folded until then
}

type modelOwn struct {
	q      []float32
	tokens uint64
	steps  uint32
	base   uint32
	folded bool
	gone   bool
	share  float64 // of q, that the local parameters have while it is in flight
	left   uint64  // steps taken when it was drafted
}

func newLearnerModel(t *rapid.T) *learnerModel {
	p := toyParams()
	p.Codec = rapid.SampledFrom([]codec.Kind{codec.F32, codec.Int4, codec.Sparse, codec.Sparse8}).Draw(t, "codec")
	p.Fragments, p.MaxSteps, p.H = 2, 40, 8
	m := &learnerModel{t: t, p: p, plan: NewPlan(toyViews(), 2), disk: map[uint64][]byte{}}
	m.local = make([]float32, 353)
	m.closed = make([]uint32, 2)
	for i, f := range m.plan {
		m.tips = append(m.tips, Genesis(f, vector(uint64(i), f.Len), p))
		m.own = append(m.own, map[uint64]*modelOwn{})
		m.u, m.held = append(m.u, make([]float64, f.Len)), append(m.held, make([]float64, f.Len))
	}
	m.pending = make([]uint64, 2)
	m.begin(rapid.Bool().Draw(t, "device"))
	for i := range m.plan { // as after folds that came late, or at once
		m.lag = append(m.lag, rapid.Uint64Range(0, 5).Draw(t, "lag"))
		m.l.frags[i].lag = m.lag[i]
	}
	return m
}

// begin makes a new learner of the trainer's values, or of a slab that a device shares.
func (m *learnerModel) begin(device bool) {
	if !device {
		m.l = NewLearner(m.p, m.plan, m.local, m.tips, m.read)
		return
	}
	m.device = &modelDevice{values: m.local, slab: make([]float32, len(m.local))}
	m.l = NewLearner(m.p, m.plan, m.device.slab, m.tips, m.read)
	m.l.Use(m.device)
	m.device.starts()
}

func (m *learnerModel) read(seq uint64) ([]byte, error) {
	if b, ok := m.disk[seq]; ok {
		return b, nil
	}
	return nil, errors.New("not on disk")
}

func (m *learnerModel) fragment() int { return rapid.IntRange(0, 1).Draw(m.t, "fragment") }

// step moves the local parameters at random.
func (m *learnerModel) step(t *rapid.T) { m.stepped(t)() }

// stepped has the trainer take a step. What it returns has the model do so.
func (m *learnerModel) stepped(t *rapid.T) (note func()) {
	tokens := rapid.IntRange(1, 1000).Draw(t, "tokens")
	change := vector(rapid.Uint64().Draw(t, "change"), len(m.local))
	for i := range m.local {
		old := m.local[i]
		m.local[i] += change[i] / 10
		change[i] = m.local[i] - old
	}
	m.l.Stepped(tokens, m.closed)
	return func() {
		for p, f := range m.plan {
			part := make([]float32, f.Len)
			f.Gather(change, part)
			for i, x := range part {
				m.u[p][i] += float64(x)
			}
			m.pending[p] += uint64(tokens)
		}
		m.steps++
	}
}

func (m *learnerModel) draft(t *rapid.T) {
	p := m.fragment()
	before := slices.Clone(m.local)
	steps, tokens := m.l.Pending(p)
	later := func() {}
	m.meanwhile(t, func(d *modelDevice) *func() { return &d.onGoOn }, func(note func()) {
		later = note // it is no part of the draft
		before = slices.Clone(m.local)
	})
	d, err := m.l.Draft(p)
	defer func() { later() }()
	if steps == 0 {
		if err == nil {
			t.Fatal("drafted nothing")
		}
		m.still()
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	share := 1.0
	if m.lag[p] >= 3 {
		share = 0.7
	} else if !m.p.Codec.Partial() && !slices.Equal(before, m.local) {
		t.Fatal("a draft changed the local parameters")
	}
	if d.Steps != min(steps, m.p.MaxSteps) || d.Tokens > tokens || d.Steps == steps && d.Tokens != tokens {
		t.Fatalf("%d steps, %d tokens drafted of %d, %d", d.Steps, d.Tokens, steps, tokens)
	}
	q := make([]float32, m.plan[p].Len)
	if err := codec.Decode(d.Payload, len(q), q); err != nil {
		t.Fatal(err)
	}
	m.disk[d.Seq] = d.Payload
	m.own[p][d.Seq] = &modelOwn{q: q, tokens: d.Tokens, steps: d.Steps, base: d.Base, share: share, left: m.steps}
	m.addU(p, q, -1)
	m.pending[p] -= d.Tokens
	if m.p.Codec.Partial() {
		m.hold(p)
	}
}

// hold parts what a sparse draft has not sent in halves: the local parameters have one, the other is held.
func (m *learnerModel) hold(p int) {
	for i, x := range m.u[p] {
		m.held[p][i] = (m.held[p][i] + x) / 2
		m.u[p][i] = m.held[p][i]
	}
}

func (m *learnerModel) addU(p int, q []float32, sign float64) {
	for i, x := range q {
		m.u[p][i] += sign * float64(x)
	}
}

// some draws a part of the own deltas that are folded or in flight.
func (m *learnerModel) some(p int, folded bool, what string) []uint64 {
	return m.which(p, what, func(o *modelOwn) bool { return o.folded == folded && !o.gone })
}

// which draws a part of the own deltas that pick selects.
func (m *learnerModel) which(p int, what string, pick func(*modelOwn) bool) []uint64 {
	return slices.DeleteFunc(m.all(p, pick), func(uint64) bool { return rapid.Bool().Draw(m.t, what) })
}

func (m *learnerModel) all(p int, pick func(*modelOwn) bool) (seqs []uint64) {
	for seq, o := range m.own[p] {
		if pick(o) {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// adopt moves a fragment to a random tip: a close, a refold, or one of another chain.
func (m *learnerModel) adopt(t *rapid.T) {
	p := m.fragment()
	old := m.tips[p]
	round := uint32(rapid.IntRange(0, int(old.Round)+2).Draw(t, "round"))
	tip := &Tip{Round: round, Global: old.Global, Ref: old.Ref, Tokens: old.Tokens}
	if rapid.Bool().Draw(t, "folded something") {
		tip.Global = vector(rapid.Uint64().Draw(t, "global parameters"), m.plan[p].Len)
		tip.Tokens++
	}
	fold, unfold := m.some(p, false, "not folded"), m.some(p, true, "not unfolded")
	returned := slices.DeleteFunc(m.some(p, false, "not returned"), func(s uint64) bool { return slices.Contains(fold, s) })
	returned = append(returned, slices.DeleteFunc(slices.Clone(unfold), func(uint64) bool { return rapid.Bool().Draw(t, "unfolded stays") })...)
	changes := slices.Concat(m.changes(p, Folded, fold), m.changes(p, Unfolded, unfold), m.changes(p, Returned, returned))
	m.meanwhile(t, func(d *modelDevice) *func() { return &d.onRest }, func(note func()) { note() })
	if err := m.l.Adopt(Adopt{Fragment: p, Tip: tip.seal(), Changes: changes}); err != nil {
		t.Fatal(err)
	}
	if len(fold) > 0 {
		m.lag[p] = m.steps
	}
	for _, seq := range fold {
		m.lag[p] = min(m.lag[p], m.steps-m.own[p][seq].left)
	}
	m.moved(p, tip, fold, unfold)
	for _, seq := range returned {
		m.undraft(p, seq)
	}
}

// changes are own deltas of a fragment that have that fate now.
func (m *learnerModel) changes(p int, fate Fate, seqs []uint64) (changes []Change) {
	for _, seq := range seqs {
		o := m.own[p][seq]
		changes = append(changes, Change{Own{Seq: seq, Base: o.base, Steps: o.steps, Tokens: o.tokens}, fate})
	}
	return changes
}

func (m *learnerModel) moved(p int, tip *Tip, fold, unfold []uint64) {
	m.tips[p], m.closed[p] = tip, max(m.closed[p], tip.Round)
	for _, seq := range fold {
		m.own[p][seq].folded = true
	}
	for _, seq := range unfold {
		m.own[p][seq].folded = false
	}
}

// undraft makes an own delta part of U again.
func (m *learnerModel) undraft(p int, seq uint64) {
	m.addU(p, m.own[p][seq].q, 1)
	m.pending[p] += m.own[p][seq].tokens
	delete(m.own[p], seq)
}

// returnDraft undoes drafts that the disk refused.
func (m *learnerModel) returnDraft(t *rapid.T) {
	p := m.fragment()
	for _, seq := range m.some(p, false, "was stored") {
		if err := m.l.Return(p, m.changes(p, Returned, []uint64{seq})[0].Own); err != nil {
			t.Fatal(err)
		}
		m.undraft(p, seq)
	}
}

// repair replaces a damaged tip: a draft notices, and U is dropped with the damage.
func (m *learnerModel) repair(t *rapid.T) {
	p := m.fragment()
	bad := *m.tips[p]
	bad.Global = slices.Clone(bad.Global)
	bad.Global[0]++
	m.l.frags[p].tip = &bad
	if steps, _ := m.l.Pending(p); steps > 0 {
		if _, err := m.l.Draft(p); !errors.Is(err, ErrDamaged) {
			t.Fatalf("a draft on damaged global parameters: %v", err)
		}
	}
	tip := *m.tips[p]
	tip.Round++
	fold, unfold := m.some(p, false, "not folded"), m.some(p, true, "not unfolded")
	told := rapid.Bool().Draw(t, "the round machine knows")
	changes := slices.Concat(m.changes(p, Folded, fold), m.changes(p, Unfolded, unfold))
	loss, err := m.l.Follow(Adopt{Fragment: p, Tip: tip.seal(), Changes: changes, Repair: told})
	if err != nil || loss.Lost.Tokens != m.pending[p] || len(loss.Gone) > 0 {
		t.Fatalf("%+v lost, %d tokens were pending: %v", loss, m.pending[p], err)
	}
	if errors.Is(loss.Found, ErrDamaged) == told {
		t.Fatalf("the round machine knows: %t; the learner found %v", told, loss.Found)
	}
	m.moved(p, &tip, fold, unfold)
	copy(m.u[p], m.held[p])
	m.pending[p] = 0
}

// stays has the learner follow what leaves the local parameters as they are.
func (m *learnerModel) stays(p int, fate Fate, seqs []uint64) {
	if err := adoptAt(m.l, p, m.tips[p], m.changes(p, fate, seqs)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *learnerModel) forget(*rapid.T) {
	p := m.fragment()
	seqs := m.which(p, "stays", func(o *modelOwn) bool { return o.folded || o.gone })
	m.stays(p, Forgotten, seqs)
	for _, seq := range seqs {
		delete(m.own[p], seq)
	}
}

// discard leaves a chain for one that does not fold some of the own deltas, and
// regain has it fold them after all: the local parameters do not move.
func (m *learnerModel) discard(*rapid.T) {
	p := m.fragment()
	seqs := m.which(p, "stays", func(o *modelOwn) bool { return o.folded })
	m.stays(p, Discarded, seqs)
	for _, seq := range seqs {
		m.own[p][seq].folded, m.own[p][seq].gone = false, true
	}
}

func (m *learnerModel) regain(*rapid.T) {
	p := m.fragment()
	seqs := m.which(p, "stays discarded", func(o *modelOwn) bool { return o.gone && !o.folded })
	m.stays(p, Regained, seqs)
	for _, seq := range seqs {
		m.own[p][seq].folded = true
	}
}

// drop gives own deltas in flight up: the local parameters are without them.
func (m *learnerModel) drop(t *rapid.T) {
	p := m.fragment()
	seqs := m.some(p, false, "stays in flight")
	m.stays(p, Dropped, seqs)
	if len(seqs) > 0 {
		m.lag[p] = m.steps
	}
	for _, seq := range seqs {
		o := m.own[p][seq]
		m.lag[p], o.gone = min(m.lag[p], m.steps-o.left), true
	}
}

// restart makes a new learner from the disk: what was not published is gone.
func (m *learnerModel) restart(t *rapid.T) {
	for i := range m.local {
		m.local[i] = 99
	}
	m.begin(m.device != nil)
	for p := range m.plan {
		clear(m.u[p])
		clear(m.held[p])
		m.pending[p], m.lag[p], m.steps = 0, 0, 0
		var own, folded []uint64
		for seq, o := range m.own[p] {
			if o.gone { // the ledger has forgotten it
				delete(m.own[p], seq)
				continue
			}
			o.share, o.left = 1, 0
			if own = append(own, seq); o.folded {
				folded = append(folded, seq)
			}
		}
		if err := m.l.Restore(p, own, folded); err != nil {
			t.Fatal(err)
		}
	}
	if m.device != nil {
		m.device.starts()
	}
}

// check is the definition of U, and what is pending and in flight.
func (m *learnerModel) check(t *rapid.T) {
	for p, f := range m.plan {
		got := make([]float32, f.Len)
		f.Gather(m.local, got)
		for i := range got {
			want := float64(m.tips[p].Global[i]) + m.u[p][i]
			for _, o := range m.own[p] {
				if !o.folded && !o.gone {
					want += o.share * float64(o.q[i])
				}
			}
			if math.Abs(float64(got[i])-want) > 1e-4 {
				t.Fatalf("fragment %d value %d: local is %v, A + sum q + U is %v", p, i, got[i], want)
			}
			if held := m.l.frags[p].held; held != nil && math.Abs(float64(held[i])-m.held[p][i]) > 1e-4 {
				t.Fatalf("fragment %d value %d: %v is held, want %v", p, i, held[i], m.held[p][i])
			}
		}
		_, pending := m.l.Pending(p)
		inFlight := m.all(p, func(o *modelOwn) bool { return !o.folded && !o.gone })
		if got := m.l.InFlight(p); pending != m.pending[p] || !slices.Equal(slices.Sorted(slices.Values(got)), inFlight) {
			t.Fatalf("fragment %d: %d tokens are pending and %d in flight, want %d and %d", p, pending, got, m.pending[p], inFlight)
		}
	}
}

func TestLearnerKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newLearnerModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"step": m.step, "draft": m.draft, "adopt": m.adopt, "forget": m.forget,
			"discard": m.discard, "regain": m.regain, "drop": m.drop, "return": m.returnDraft, "repair": m.repair, "restart": m.restart, "lost": m.lost, "dies in a draft": m.diesInADraft, "": m.check,
		})
	})
}

// oneFragment is a learner of one fragment with a disk.
func oneFragment(p Params) (*Learner, []float32, *Tip, map[uint64][]byte) {
	f, disk := toyFragment(), map[uint64][]byte{}
	local, tip := make([]float32, f.Len), Genesis(f, make([]float32, f.Len), p)
	read := func(seq uint64) ([]byte, error) {
		if b, ok := disk[seq]; ok {
			return b, nil
		}
		return nil, errors.New("not on disk")
	}
	return NewLearner(p, Plan{f}, local, []*Tip{tip}, read), local, tip, disk
}

func TestDraftSplitsWhatAHeaderCannotCarry(t *testing.T) {
	p := toyParams()
	l, _, _, _ := oneFragment(p)
	for range 2500 {
		l.Stepped(512, []uint32{3})
	}
	for _, want := range []struct{ steps, tokens int }{{1024, 1024 * 512}, {1024, 1024 * 512}, {452, 452 * 512}} {
		d, err := l.Draft(0)
		if err != nil || int(d.Steps) != want.steps || int(d.Tokens) != want.tokens || d.Base != 3 {
			t.Errorf("%v: drafted %d steps, %d tokens on %d, want %v", err, d.Steps, d.Tokens, d.Base, want)
		}
	}
	if _, err := l.Draft(0); err == nil {
		t.Error("drafted nothing")
	}
}

func TestDeclaredWorkIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxSteps, maxTokens := rapid.Uint32Range(1, MaxStepsLimit).Draw(t, "max steps"), rapid.Uint64Range(1, MaxTokensLimit).Draw(t, "max tokens")
		w := Work{Steps: rapid.Uint64Range(1, 1<<24).Draw(t, "steps")}
		w.Tokens = rapid.Uint64Range(w.Steps, w.Steps*maxTokens).Draw(t, "tokens")
		for total := w; w.Steps > 0; {
			d := w.declare(maxSteps, maxTokens)
			if d.Steps < 1 || d.Steps > uint64(maxSteps) || d.Tokens < 1 || d.Tokens > d.Steps*maxTokens {
				t.Fatalf("%+v of %+v", d, w)
			}
			w.Sub(d)
			if w.Steps == 0 && w.Tokens != 0 || w.Tokens > w.Steps*maxTokens || w.Tokens > total.Tokens {
				t.Fatalf("%+v are left", w)
			}
			if total.Steps/uint64(maxSteps) > 1000 {
				return
			}
		}
	})
}

func TestDraftOfADivergedLearnerFails(t *testing.T) {
	l, local, _, _ := oneFragment(toyParams())
	local[3] = float32(math.NaN())
	l.Stepped(512, []uint32{0})
	if _, err := l.Draft(0); err == nil {
		t.Error("drafted a NaN")
	}
	if steps, tokens := l.Pending(0); steps != 1 || tokens != 512 {
		t.Errorf("%d steps, %d tokens are pending after a failed draft", steps, tokens)
	}
}

func TestFailedAdoptionChangesNothing(t *testing.T) {
	l, local, tip, _ := oneFragment(toyParams())
	local[0] = 1
	l.Stepped(512, []uint32{0})
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	next := &Tip{Round: 1, Global: vector(1, len(local)), Ref: tip.Ref, Tokens: 1}
	for name, changes := range map[string][]Change{
		"unknown":             changed(Folded, Draft{Seq: 77}),
		"twice":               changed(Folded, d, d),
		"not folded":          changed(Unfolded, d),
		"unknown return":      changed(Returned, Draft{Seq: 77}),
		"returned twice":      changed(Returned, d, d),
		"folded and returned": append(changed(Folded, d), changed(Returned, d)...),
		"in flight":           changed(Discarded, d),
		"still in flight":     changed(Forgotten, d),
		"not discarded":       changed(Regained, d),
	} {
		before, state := slices.Clone(local), stateOf(l)
		if adopt(l, next, changes) == nil {
			t.Errorf("%s: adopted", name)
		}
		if !slices.Equal(before, local) || stateOf(l) != state {
			t.Errorf("%s: something changed", name)
		}
	}
	if adopt(l, &Tip{Round: 1}) == nil {
		t.Error("adopted a tip of another fragment")
	}
}

// Once folded, a payload is read back from the disk; a disk that fails leaves the local parameters alone.
func TestUnfoldReadsThePayloadBack(t *testing.T) {
	l, local, tip, disk := oneFragment(toyParams())
	local[0] = 1
	l.Stepped(512, []uint32{0})
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	next := (&Tip{Round: 1, Global: slices.Clone(local), Ref: tip.Ref, Tokens: d.Tokens}).seal()
	if err := adopt(l, next, changed(Folded, d)); err != nil {
		t.Fatal(err)
	}
	if local[0] != 1 {
		t.Errorf("the local value is %v: all of q left and all of it came back with the global parameters", local[0])
	}
	if err := adopt(l, tip, changed(Unfolded, d)); err == nil || local[0] != 1 {
		t.Errorf("a missing payload: %v, local %v", err, local[0])
	}
	disk[d.Seq] = d.Payload
	if err := adopt(l, tip, changed(Unfolded, d)); err != nil || local[0] != 1 {
		t.Errorf("%v, local %v: q is back and the global parameters gone", err, local[0])
	}
}

func TestReturnedWorkKeepsItsBase(t *testing.T) {
	l, _, tip, _ := oneFragment(toyParams())
	l.Stepped(10, []uint32{4})
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	l.Stepped(7, []uint32{9})
	if err := adopt(l, tip, changed(Returned, d)); err != nil {
		t.Fatal(err)
	}
	again, err := l.Draft(0)
	if err != nil || again.Base != 4 || again.Steps != 2 || again.Tokens != 17 || again.Seq == d.Seq {
		t.Errorf("%v: drafted %+v", err, again)
	}
}

// Two learners that fold each other's work end with the same global parameters and lose nothing: after all is
// folded, the local parameters are the global ones but for rounding.
func TestLearnersMeet(t *testing.T) {
	p := toyParams()
	p.Codec = codec.Int4
	f := toyFragment()
	tip := Genesis(f, vector(1, f.Len), p)
	var learners []*Learner
	locals := [][]float32{make([]float32, f.Len), make([]float32, f.Len)}
	for i := range locals {
		learners = append(learners, NewLearner(p, Plan{f}, locals[i], []*Tip{tip}, nil))
	}
	for round := uint32(1); round <= 8; round++ {
		var set []Contribution
		var drafts []Draft
		for i, l := range learners {
			if round <= 3 { // then only what the codec lost is left
				for j, x := range vector(uint64(round)*2+uint64(i), f.Len) {
					locals[i][j] += x
				}
			}
			l.Stepped(512, []uint32{round - 1})
			d, err := l.Draft(0)
			if err != nil {
				t.Fatal(err)
			}
			c := contribution(t, p, byte(i), round, make([]float32, f.Len))
			c.Payload, c.Delta.Size, c.Delta.Steps, c.Delta.Tokens = d.Payload, len(d.Payload), d.Steps, d.Tokens
			set, drafts = append(set, c), append(drafts, d)
		}
		tip = mustFold(t, p, f, tip, set...)
		for i, l := range learners {
			if err := adopt(l, tip, changed(Folded, drafts[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, local := range locals {
		for j, x := range local {
			if math.Abs(float64(x-tip.Global[j])) > 1e-3 {
				t.Fatalf("learner %d value %d: local %v, global parameters %v", i, j, x, tip.Global[j])
			}
		}
	}
}
