package rounds

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// planner is a machine whose own deltas have so many bytes, all fragments together.
func planner(t rapid.TB, p outer.Params, sweep int) *rig {
	g := newRig(t, p)
	for _, f := range g.m.frags {
		f.learn.size = sweep / p.Fragments
	}
	return g
}

// links tells the machine of links, a second after the last time.
func (g *rig) links(l Links) Plan {
	g.now += plannedMs
	g.m.SetLinks(g.now, l)
	return g.m.Plan()
}

// By hand: four learners with a step each 0.2 s and 4.8 MB a sweep send 3 x 4.8 MB x 20/s =
// 288 MB/s a step of H. Four uplinks of 2.5 MB/s may carry 7.5 MB/s of that: 38.4 steps, a tenth more is 43.
func TestPlanByHand(t *testing.T) {
	p := roundsParams(2)
	p.H, p.HMin, p.MaxSteps, p.Codec = 24, 6, 1024, codec.Int4
	usual := Links{Steps: 20, Upload: 10e6, Copies: 3, OwnSteps: 5, OwnUpload: 2.5e6}
	for _, c := range []struct {
		name   string
		change func(*Links)
		want   Plan
	}{
		{"the run's links are too thin for H", func(*Links) {}, Plan{Steps: 43, Common: 43}},
		{"links have room", func(l *Links) { l.Upload, l.OwnUpload = 40e6, 10e6 }, Plan{Steps: 24, Common: 24}},
		{"nothing is known of links", func(l *Links) { l.Upload, l.OwnUpload = 0, 0 }, Plan{Steps: 24, Common: 24}},
		{"the own link is thin", func(l *Links) { l.Upload, l.OwnUpload = 38e6, 0.625e6 }, Plan{Steps: 57, Common: 24}},
		{"no links carry it", func(l *Links) { l.Upload = 1e6 }, Plan{Steps: 64, Common: 64, Thin: true}},
	} {
		l := usual
		c.change(&l)
		if got := planner(t, p, 4.8e6).links(l); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := newRig(t, p).links(usual); got != (Plan{Steps: 24, Common: 24}) {
		t.Errorf("before the first delta: %+v", got)
	}
}

// A plan carries the run and is no longer than it needs to be. While rates differ by less
// than a tenth it rises once at most, as it may just fit when they begin to; the own plan
// may follow the common one and then rise itself. So no plan can swing.
func TestPlanSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := roundsParams(2)
		p.H = rapid.IntRange(1, 64).Draw(t, "h")
		p.HMin, p.MaxSteps, p.Codec = 1, 2048, codec.Int4
		g := planner(t, p, rapid.IntRange(1e3, 1e7).Draw(t, "sweep"))
		rates := rapid.Float64Range(1e3, 1e8)
		l := Links{Steps: rapid.Float64Range(0.01, 1000).Draw(t, "steps"), Copies: rapid.IntRange(1, 15).Draw(t, "copies")}
		l.OwnSteps = l.Steps * rapid.Float64Range(0.01, 1).Draw(t, "own")
		l.Upload, l.OwnUpload = rates.Draw(t, "upload"), rates.Draw(t, "own upload")
		g.links(Links{Steps: l.Steps, Upload: rates.Draw(t, "before"), Copies: l.Copies}) // wherever it comes from
		plan := g.links(l)
		for _, half := range []struct{ plan, needed float64 }{
			{float64(plan.Common), stepsFor(g.m.SweepBytes()*float64(l.Copies)*l.Steps, l.Upload)},
			{float64(plan.Steps), max(stepsFor(g.m.SweepBytes()*l.OwnSteps, l.OwnUpload), float64(plan.Common)/planMost)},
		} {
			most := float64(g.m.mostPlanned())
			if half.plan < min(half.needed, most) || half.plan > max(float64(p.H), planMost*half.needed+1) || half.plan > most {
				t.Fatalf("%+v: %v steps, needed are %v", plan, half.plan, half.needed)
			}
		}
		var commonRose, ownRose int
		for range 10 {
			noise := rapid.Float64Range(0.96, 1.04).Draw(t, "noise")
			now := g.links(Links{l.Steps, l.Upload * noise, l.Copies, l.OwnSteps, l.OwnUpload * noise})
			commonRose += rise(plan.Common, now.Common)
			ownRose += rise(plan.Steps, now.Steps)
			plan = now
		}
		if commonRose > 1 || ownRose > 2 {
			t.Fatalf("with rates that differ by a twelfth the plan rose %d times, the own one %d times, to %+v", commonRose, ownRose, plan)
		}
	})
}

// rise is 1 if a plan of so many steps grew, otherwise 0.
func rise(from, to int) int {
	if to > from {
		return 1
	}
	return 0
}

// Whatever peers claim, plans stay within their bounds.
func TestPlanOfClaims(t *testing.T) {
	p := roundsParams(2)
	p.H, p.HMin, p.MaxSteps, p.Codec = 24, 6, 1024, codec.Int4
	usual := Links{Steps: 20, Upload: 10e6, Copies: 3, OwnSteps: 5, OwnUpload: 2.5e6}
	most := newRig(t, p).m.mostPlanned()
	for _, x := range []float64{0, 5e-324, 1e-300, 1e19, math.MaxFloat64, math.Inf(1), math.NaN()} {
		for name, change := range map[string]func(*Links){
			"steps": func(l *Links) { l.Steps = x }, "upload": func(l *Links) { l.Upload = x },
			"own upload": func(l *Links) { l.OwnUpload = x }, "both": func(l *Links) { l.Steps, l.Upload = x, x },
		} {
			l := usual
			change(&l)
			if got := planner(t, p, 4.8e6).links(l); got.Common < p.H || got.Common > most || got.Steps < got.Common || got.Steps > most {
				t.Errorf("%s of %g: %+v", name, x, got)
			}
		}
	}
}

// A learner whose link is thinner than those of the others does not wait for its own delta
// in the rounds that it leaves out.
func TestLeavesOutWithoutWaiting(t *testing.T) {
	g := planner(t, roundsParams(1), 1000)
	g.live(1, 2)
	if plan := g.links(Links{Steps: 1, Upload: 1e6, Copies: 1, OwnSteps: 1, OwnUpload: 64}); !g.m.leavesOut() {
		t.Fatalf("plan %+v", plan)
	}
	g.give(g.delta(outer.Author{1}, 0, 1), g.delta(outer.Author{2}, 0, 1))
	if got := g.m.Fragment(0).Closed(); got != 1 {
		t.Errorf("with the deltas of all others of round 1, closed is %d", got)
	}
}

// Lateness changes no plan: only bytes and rates do.
func TestPlanIsNotOfLateness(t *testing.T) {
	p := roundsParams(1)
	p.H, p.HMin, p.MaxSteps = 24, 6, 1024
	l := Links{Steps: 20, Upload: 10e6, Copies: 3, OwnSteps: 5, OwnUpload: 2.5e6}
	g := planner(t, p, 4.8e6)
	want := g.links(l)
	for range 20 {
		g.m.late.observe(outer.Author{1}, 1e6)
	}
	if got := g.links(l); got != want {
		t.Errorf("%+v became %+v", want, got)
	}
}

// A learner proposes a round after the steps that it plans, and publishes in one after a share of them.
func TestPlannedSteps(t *testing.T) {
	p := roundsParams(1)
	p.MaxSteps = 1024
	g := planner(t, p, 1000)
	g.live(1)
	g.links(Links{Steps: 1, Upload: 72.5, Copies: 1, OwnSteps: 0.5, OwnUpload: 36.25}) // 18.4 steps needed, 21 planned
	if got := g.m.Plan(); got.Steps != 21 {
		t.Fatalf("plan %+v", got)
	}
	if g.step(20); len(g.drafts) != 0 {
		t.Error("proposes before its plan")
	}
	if g.step(1); len(g.drafts) != 1 {
		t.Error("does not propose after its plan")
	}
	g.publish(0)
	g.give(g.delta(outer.Author{1}, 0, 1))
	g.give(g.delta(outer.Author{1}, 0, 2))
	if g.step(4); len(g.drafts) != 0 {
		t.Error("publishes 4 steps of 21, where 2 of 8 are the least")
	}
	if g.step(1); len(g.drafts) != 1 {
		t.Error("does not publish 5")
	}
}

// A learner with a thin link leaves rounds out, and nobody waits for it until its plan is full.
func TestThinLinkLeavesRoundsOut(t *testing.T) {
	p := roundsParams(1)
	g := planner(t, p, 1000)
	g.live(1, 2)
	g.m.SetPlans(map[outer.Author]uint32{{2}: 17}) // of 8: the third round
	thin := outer.Author{2}
	g.give(g.delta(outer.Author{1}, 0, 1), g.delta(thin, 0, 1))
	g.step(8)
	g.m.HandedOver(g.now, 0, g.publish(0).ID)
	for round := uint32(2); round <= 4; round++ {
		g.give(g.delta(outer.Author{1}, 0, round))
		g.step(8)
		g.m.HandedOver(g.now, 0, g.publish(0).ID)
		if closed := g.m.Fragment(0).Closed() >= round; closed != (round < 4) {
			t.Errorf("round %d closed without the thin learner: %v", round, closed)
		}
	}
	own := planner(t, p, 1000)
	own.links(Links{Steps: 1, Upload: 1e6, Copies: 1, OwnSteps: 1, OwnUpload: 64}) // 20.8 needed, 23 planned
	own.give(own.delta(outer.Author{1}, 0, 1))
	if own.step(22); len(own.drafts) != 0 {
		t.Error("publishes before its plan is full")
	}
	if own.step(1); len(own.drafts) != 1 {
		t.Error("does not publish when its plan is full")
	}
}

// The grace limit follows what deltas take, within its bounds.
func TestGraceLimit(t *testing.T) {
	p := roundsParams(1)
	p.GraceMaxMs = 120_000
	g := newRig(t, p)
	if got := g.m.GraceLimit(); got != leastLimitMs {
		t.Errorf("%d ms before anything was measured", got)
	}
	g.unknown(1)
	g.m.late.observe(outer.Author{1}, 4000)
	if got := g.m.GraceLimit(); got != limitTimes*4000*lateMarginNum/lateMarginDen {
		t.Errorf("%d ms where deltas take 4 s", got)
	}
	g.m.late.observe(outer.Author{1}, math.MaxInt32)
	if got := g.m.GraceLimit(); got != p.GraceMaxMs {
		t.Errorf("%d ms, genesis allows %d", got, p.GraceMaxMs)
	}
}
