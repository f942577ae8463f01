package outer

import (
	"errors"
	"math"
	"slices"

	"atoll/optimizer"
	"pgregory.net/rapid"
)

// modelDevice steps values of its own.
type modelDevice struct {
	values, slab []float32
	dead         bool
	dies         bool   // once it goes on next
	diverges     bool   // what it brings when it dies is no number
	onRest       func() // what happens before it rests next
	onGoOn       func() // and when it goes on next
}

func (d *modelDevice) Pause() { once(&d.onRest) }
func (d *modelDevice) Resume() {
	once(&d.onGoOn)
	d.dead, d.dies = d.dead || d.dies, false
}

func once(do *func()) {
	if f := *do; f != nil {
		*do = nil
		f()
	}
}

func (d *modelDevice) Flush(pieces []optimizer.Span) error {
	if d.dead {
		for _, p := range pieces {
			if d.diverges {
				d.slab[p.Offset] = float32(math.NaN())
			}
		}
		return errors.New("no answer")
	}
	for _, p := range pieces {
		copy(d.slab[p.Offset:p.Offset+p.Len], d.values[p.Offset:])
	}
	return nil
}

func (d *modelDevice) Load(pieces []optimizer.Span) {
	for _, p := range pieces {
		if !d.dead {
			copy(d.values[p.Offset:p.Offset+p.Len], d.slab[p.Offset:])
		}
	}
}

// starts has the device take everything.
func (d *modelDevice) starts() {
	d.dead = false
	copy(d.values, d.slab)
}

// meanwhile has a device take a step while the learner computes: note has the model do so.
func (m *learnerModel) meanwhile(t *rapid.T, when func(d *modelDevice) *func(), note func(func())) {
	if m.device != nil && rapid.Bool().Draw(t, "steps meanwhile") {
		*when(m.device) = func() { note(m.stepped(t)) }
	}
}

// still has nothing happen meanwhile any more.
func (m *learnerModel) still() {
	if m.device != nil {
		m.device.onRest, m.device.onGoOn, m.device.dies = nil, nil, false
	}
}

// lost is the death of a device, and the start of another. In between a fragment may move.
func (m *learnerModel) lost(t *rapid.T) {
	if m.device == nil {
		return
	}
	m.device.dead, m.device.diverges = true, rapid.Bool().Draw(t, "diverges")
	for i := range m.local {
		m.local[i] = 99
	}
	gone := slices.Clone(m.pending)
	if rapid.Bool().Draw(t, "moves meanwhile") {
		p := m.fragment()
		if steps, _ := m.l.Pending(p); steps > 0 {
			if _, err := m.l.Draft(p); !errors.Is(err, ErrDevice) {
				t.Fatalf("a draft without a device: %v", err)
			}
		}
		fold := m.some(p, false, "not folded")
		tip := *m.tips[p]
		tip.Round++
		loss, err := m.l.Follow(Adopt{Fragment: p, Tip: tip.seal(), Changes: m.changes(p, Folded, fold)})
		if err != nil || loss.Lost.Tokens != m.pending[p] {
			t.Fatalf("%+v lost, %d tokens were pending: %v", loss, m.pending[p], err)
		}
		m.moved(p, &tip, fold, nil)
		gone[p] = 0
	}
	for p := range m.plan {
		loss, err := m.l.Lost(p)
		if err != nil || loss.Lost.Tokens != gone[p] || len(loss.Gone) > 0 {
			t.Fatalf("fragment %d: %+v lost, %d tokens were pending: %v", p, loss, gone[p], err)
		}
		copy(m.u[p], m.held[p])
		m.pending[p] = 0
	}
	m.device.starts()
}

// diesInADraft loses a device once it has brought what it had: what is drafted of that is published all the same.
func (m *learnerModel) diesInADraft(t *rapid.T) {
	if m.device == nil {
		return
	}
	m.device.dies, m.device.diverges = true, rapid.Bool().Draw(t, "diverges in a draft")
	m.draft(t)
	m.lost(t)
}
