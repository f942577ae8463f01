package gossip

import (
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/wire"
)

// Worlds with thin uplinks: what nodes that know nothing but heartbeats and headers make of
// them together. Rates are bytes per ms: 625 are 5 Mbit/s, 12500 are 100 Mbit/s.

// uplinks is a world of nodes with such uplinks and wide downlinks.
func uplinks(t *testing.T, seed uint64, rates ...float64) *world {
	w := newWorld(t, seed, 0, options{fragments: 1, latency: 20, link: 12500})
	for range rates {
		w.add()
	}
	for i, rate := range rates {
		w.nodes[i].rate, w.nodes[i].state = rate, wire.Training
	}
	w.merge()
	return w
}

// runs has every node publish once in each period, until the end, at different times. It
// returns the deltas that were made after from.
func (w *world) publishes(period Time, size int, from, until Time) (late []wire.SignedHeader) {
	for round := Time(1); round*period < until; round++ {
		for i, n := range w.nodes {
			w.after(round*period+Time(i)*period/Time(len(w.nodes)), func() {
				if !n.up {
					return
				}
				h := n.publish(0, uint32(round), w.payload(size))
				if w.now > from {
					late = append(late, h)
				}
			})
		}
		w.after((round+2)*period, func() {
			for _, n := range w.nodes {
				n.closeAll(uint32(round))
			}
		})
	}
	w.runUntil(until)
	return late
}

// delays are how long the deltas were on their way to all that are to have them, sorted;
// one that never came counts as forever.
func (w *world) delays(deltas []wire.SignedHeader, to []*node) (ms []Time) {
	const forever = 1 << 40
	for _, h := range deltas {
		id := h.Header.ID(w.run)
		made := w.node(h.Header.Author).stored[id]
		for _, n := range to {
			if at, ok := n.stored[id]; ok {
				ms = append(ms, at-made)
			} else {
				ms = append(ms, forever)
			}
		}
	}
	slices.Sort(ms)
	return ms
}

// warm is when nodes know what each of them publishes.
const warm = 2 * fetch.FlowMinMs

func part(ms []Time, share float64) Time { return ms[int(float64(len(ms)-1)*share)] }

// One of four has 5 Mbit/s and publishes what is too much for three copies. It sends each
// delta about once, and nothing is late.
func TestThinUplinkSendsOnce(t *testing.T) {
	const period, size = 400, 100_000
	w := uplinks(t, 1, 625, 12500, 12500, 12500)
	thin, before := w.nodes[0], int64(0)
	w.after(warm, func() { before = thin.link.sent })
	late := w.publishes(period, size, warm, warm+30_000)
	w.runUntil(w.now + 5000)
	made := int64(30_000/period) * size
	ms := w.delays(late, w.nodes)
	t.Logf("the thin one sent %.2f copies; delays: median %d, 95 %% %d, most %d ms", float64(thin.link.sent-before)/float64(made), part(ms, 0.5), part(ms, 0.95), part(ms, 1))
	if sent := thin.link.sent - before; sent > made*5/4 {
		t.Errorf("it sent %d bytes for %d of deltas", sent, made)
	}
	if most := part(ms, 1); most > 1500 {
		t.Errorf("a delta took %d ms", most)
	}
}

// All have the same uplink, with 0.7 of it needed: nothing is relayed, and what waits
// leaves in order.
func TestEqualUplinksServeInOrder(t *testing.T) {
	t.Parallel()
	const size, rate = 300_000, 2500
	const period = 3 * size * 10 / (7 * rate)
	w := uplinks(t, 2, rate, rate, rate, rate)
	late := w.publishes(period, size, warm, warm+30_000)
	w.runUntil(w.now + 5000)
	ms := w.delays(late, w.nodes)
	t.Logf("delays: median %d, 95 %% %d, most %d ms", part(ms, 0.5), part(ms, 0.95), part(ms, 1))
	if most := part(ms, 1); most > 3*size/rate+500 {
		t.Errorf("a delta took %d ms", most)
	}
	var sent int64
	for _, n := range w.nodes {
		sent += n.link.sent
	}
	if made := int64(len(w.nodes[0].stored)) * size * 3; sent > made*21/20 {
		t.Errorf("%d bytes were sent for %d of payloads", sent, made)
	}
}

// A peer that claims a huge uplink becomes everybody's relay. It gives nothing, and few
// deltas are late for it.
func TestRelayThatGivesNothing(t *testing.T) {
	t.Parallel()
	const period, size = 400, 100_000
	w := uplinks(t, 3, 625, 12500, 12500, 12500, 12500)
	liar := w.nodes[4]
	liar.withhold, liar.claims = true, 1e6
	honest := w.nodes[:4]
	late := w.publishes(period, size, warm, warm+30_000)
	w.runUntil(w.now + 30_000)
	late = slices.DeleteFunc(late, func(h wire.SignedHeader) bool { return h.Header.Author == liar.id })
	ms := w.delays(late, honest)
	t.Logf("delays: median %d, 95 %% %d, 99 %% %d, most %d ms", part(ms, 0.5), part(ms, 0.95), part(ms, 0.99), part(ms, 1))
	if late := part(ms, 0.95); late > 1500 {
		t.Errorf("a twentieth of the deltas took %d ms or more", late)
	}
	if most := part(ms, 1); most > 20_000 {
		t.Errorf("a delta took %d ms", most)
	}
}

// Whatever peers claim or withhold, each payload that a live honest node has made reaches
// all of them within a bound. ATOLL_LONG=1 plays eight worlds.
func TestPayloadsArriveWhateverPeersClaim(t *testing.T) {
	t.Parallel()
	const size, bound = 50_000, 60_000
	seeds := uint64(3)
	if long {
		seeds = 8
	}
	for seed := range seeds {
		w, honest := liars(t, seed)
		period := w.fits(size)
		late := w.publishes(period, size, 0, warm+10_000)
		w.runUntil(w.now + bound)
		late = slices.DeleteFunc(late, func(h wire.SignedHeader) bool { return !slices.Contains(honest, w.node(h.Header.Author)) })
		if most := part(w.delays(late, honest), 1); most > bound {
			t.Errorf("seed %d: of %d deltas of %d honest nodes one took %d ms with a period of %d", seed, len(late), len(honest), most, period)
		}
	}
}

// liars is a world of three to six nodes, some of which claim much and give nothing. One
// of the others may die.
func liars(t *testing.T, seed uint64) (w *world, honest []*node) {
	rng := rand.New(rand.NewPCG(seed, 7))
	rates := make([]float64, 3+rng.IntN(4))
	for i := range rates {
		rates[i] = []float64{625, 1250, 2500, 12500}[rng.IntN(4)]
	}
	w = uplinks(t, seed, rates...)
	for i, n := range w.nodes {
		if i == 0 || rng.IntN(4) > 0 {
			honest = append(honest, n)
			continue
		}
		n.withhold, n.claims = true, []float64{0, 5000, 1e6, 1e12}[rng.IntN(4)]
	}
	if last := honest[len(honest)-1]; len(honest) > 1 && rng.IntN(2) == 0 {
		w.after(warm+5000, func() { w.kill(last.index) })
		honest = honest[:len(honest)-1]
	}
	return w, honest
}

// fits is the period at which payloads take 0.7 of all uplinks together, and a copy of its
// own no more of any.
func (w *world) fits(size int) Time {
	all, period := 0.0, Time(400) // a window of rounds must outlast what is late
	for _, n := range w.nodes {
		all += n.rate
		period = max(period, Time(float64(size)/(0.7*n.rate)))
	}
	m := float64(len(w.nodes))
	return max(period, Time(m*(m-1)*float64(size)/(0.7*all)))
}
