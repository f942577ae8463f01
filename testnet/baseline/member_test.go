package baseline

import (
	"testing"
	"testing/synctest"
	"time"

	"atoll/gossip/wire"
)

// someRules expect so many members and end after so many rounds of all of them.
func someRules(expect, rounds int) Rules {
	return DefaultRules(expect, uint64(expect*rounds*tokensEach))
}

// inCloud runs a test in virtual time, and afterwards until all members have ended.
func inCloud(t *testing.T, rules Rules, play func(c *cloud) (check func())) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, rules)
		began := time.Now()
		check := func() {}
		done := make(chan struct{})
		go func() {
			defer close(done)
			check = play(c)
			c.run()
		}()
		<-done
		check()
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("the run took %v: something waited without need", took)
		}
	})
}

func TestRunsOfEverySize(t *testing.T) {
	for n := 1; n <= 7; n++ {
		inCloud(t, someRules(n, 30), func(c *cloud) func() {
			var all []*player
			for i := range n {
				all = append(all, c.start(byte(i+1)))
			}
			return func() {
				c.finals(all...)
				if folded := c.account(); folded[idOf(1)] != 30*tokensEach {
					t.Errorf("%d members: member 1 has %d tokens in the model, want %d", n, folded[idOf(1)], 30*tokensEach)
				}
				if views := c.desk.registry.View().Number; views != 1 {
					t.Errorf("%d members needed %d views", n, views)
				}
			}
		})
	}
}

// TestRunTakesAsLongAsItsRounds: virtual time shows that nobody waits without need.
func TestRunTakesAsLongAsItsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, someRules(3, 50))
		began := time.Now()
		for i := range 3 {
			c.start(byte(i + 1)).learner.setPace(time.Duration(i+1) * 100 * time.Millisecond)
		}
		c.run()
		// The slowest takes 300 ms for a round; meeting and parting are a second or so.
		if took := time.Since(began); took < 15*time.Second || took > 17*time.Second {
			t.Errorf("50 rounds of 300 ms took %v", took)
		}
	})
}

// TestDeadMemberIsDropped: the others repeat the round and go on, and it comes back with
// the state of one of them.
func TestDeadMemberIsDropped(t *testing.T) {
	inCloud(t, someRules(4, 200), func(c *cloud) func() {
		a, b, d, e := c.start(1), c.start(2), c.start(3), c.start(4)
		time.Sleep(3230 * time.Millisecond) // in the middle of a round
		c.kill(b)
		time.Sleep(5 * time.Second)
		if l := a.Label(); l.View != 2 || len(a.members()) != 3 {
			t.Errorf("5 s after a death: %+v with %d members", l, len(a.members()))
		}
		b2 := c.start(2)
		time.Sleep(2 * time.Second)
		if n := len(a.members()); n != 4 {
			t.Errorf("2 s after its return: %d members", n)
		}
		return func() {
			c.finals(a, b2, d, e)
			folded := c.account()
			if folded[idOf(2)] == 0 || folded[idOf(2)] >= folded[idOf(1)] {
				t.Errorf("tokens in the model: %v", folded)
			}
		}
	})
}

func (m *Member) members() []wire.PeerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view.Members
}

// TestHangingMemberIsDropped: one that stops without ending its connections costs the
// others the time in which it is noticed, once; when it goes on, it comes back.
func TestHangingMemberIsDropped(t *testing.T) {
	inCloud(t, someRules(3, 300), func(c *cloud) func() {
		a, b, d := c.start(1), c.start(2), c.start(3)
		time.Sleep(2 * time.Second)
		b.learner.mu.Lock()
		b.learner.stuck = 30 * time.Second
		b.learner.mu.Unlock()
		time.Sleep(minSilenceLimit + c.rules.Grace + time.Second)
		if n := len(a.members()); n != 2 {
			t.Errorf("a member that hangs: the view has %d", n)
		}
		before := a.Label().Round
		time.Sleep(time.Second)
		if after := a.Label().Round; after <= before {
			t.Errorf("the others stand still at round %d", after)
		}
		time.Sleep(30 * time.Second)
		if n := len(a.members()); n != 3 {
			t.Errorf("after it went on: the view has %d", n)
		}
		return func() { c.finals(a, b, d) }
	})
}

// TestPartedMembers: the larger side goes on, the other waits, and then they are one view again.
func TestPartedMembers(t *testing.T) {
	for _, sides := range [][2][]byte{{{1}, {2, 3, 4}}, {{1, 2}, {3, 4}}, {{1, 3}, {2, 4}}, {{1, 2, 3}, {4}}} {
		inCloud(t, someRules(4, 300), func(c *cloud) func() {
			all := []*player{c.start(1), c.start(2), c.start(3), c.start(4)}
			time.Sleep(2 * time.Second)
			c.separate(sides[0], sides[1], true)
			time.Sleep(10 * time.Second)
			var rounds [4]uint64
			for i, p := range all {
				rounds[i] = p.Label().Round
			}
			time.Sleep(5 * time.Second)
			moved := 0
			for i, p := range all {
				if p.Label().Round > rounds[i] {
					moved++
				}
			}
			if want := max(len(sides[0]), len(sides[1])); moved != want {
				t.Errorf("%v: %d members go on, want %d", sides, moved, want)
			}
			c.separate(sides[0], sides[1], false)
			time.Sleep(10 * time.Second)
			if n := len(all[0].members()); n != 4 {
				t.Errorf("%v: 10 s after it: %d members", sides, n)
			}
			return func() { c.finals(all...); c.account() }
		})
	}
}

// TestAllDie: a member that comes then begins anew, and the model has nothing of before.
func TestAllDie(t *testing.T) {
	inCloud(t, someRules(2, 40), func(c *cloud) func() {
		a, b := c.start(1), c.start(2)
		time.Sleep(2 * time.Second)
		c.kill(a)
		c.kill(b)
		time.Sleep(time.Second)
		a2, b2 := c.start(1), c.start(2)
		return func() {
			c.finals(a2, b2)
			if sum := c.account(); sum[idOf(1)]+sum[idOf(2)] < c.rules.Budget {
				t.Errorf("tokens in the model: %v", sum)
			}
		}
	})
}

// TestMemberLeaves: it ends its round with the others, who lose nothing.
func TestMemberLeaves(t *testing.T) {
	inCloud(t, someRules(3, 100), func(c *cloud) func() {
		a, b, d := c.start(1), c.start(2), c.start(3)
		time.Sleep(2 * time.Second)
		rounds := a.learner.begun()
		b.cancel()
		time.Sleep(time.Second)
		c.kill(b) // its process has ended
		return func() {
			c.finals(a, d)
			c.account()
			if _, final := b.state(); final {
				t.Error("the one that left claims to have the model")
			}
			if made := a.Label().Round; uint64(a.learner.begun()) != made {
				t.Errorf("member 1 began %d rounds (%d before the other left) for %d in the model", a.learner.begun(), rounds, made)
			}
		}
	})
}

func (s *sleeper) begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rounds
}

// TestJoinerLosesNobodyARound: a member that comes later is let in between two rounds.
func TestJoinerLosesNobodyARound(t *testing.T) {
	inCloud(t, someRules(2, 200), func(c *cloud) func() {
		a, b := c.start(1), c.start(2)
		time.Sleep(5 * time.Second)
		d := c.start(3)
		return func() {
			c.finals(a, b, d)
			if made := a.Label().Round; uint64(a.learner.begun()) != made {
				t.Errorf("member 1 began %d rounds for %d in the model", a.learner.begun(), made)
			}
			if c.account()[idOf(3)] == 0 {
				t.Error("the joiner has no tokens in the model")
			}
		}
	})
}

// TestChurn kills and restarts members again and again, from a list of moments that no
// two rounds divide.
func TestChurn(t *testing.T) {
	inCloud(t, someRules(5, 600), func(c *cloud) func() {
		all := map[byte]*player{}
		for n := byte(1); n <= 5; n++ {
			all[n] = c.start(n)
		}
		time.Sleep(time.Second)
		for i := range 20 {
			n := byte(i*3%5) + 1
			time.Sleep(time.Duration(170+i*37) * time.Millisecond)
			c.kill(all[n])
			time.Sleep(time.Duration(90+i*53) * time.Millisecond)
			all[n] = c.start(n)
		}
		return func() {
			c.finals(all[1], all[2], all[3], all[4], all[5])
			c.account()
		}
	})
}

// TestViewsThatDoNotSuit are refused, whatever the coordinator says.
func TestViewsThatDoNotSuit(t *testing.T) {
	self, other := idOf(1), idOf(2)
	m := &Member{net: &memHost{id: self}, in: 3, label: Label{2, 5, 50}}
	good := View{Number: 4, From: m.label, Members: []wire.PeerID{self, other}, Source: self}
	lacking := View{Number: 4, From: Label{3, 9, 90}, Members: good.Members, Source: other, Lacking: []wire.PeerID{self}}
	for _, v := range []View{good, lacking} {
		if err := m.suits(v); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
	}
	old, without, elsewhere := good, good, lacking
	old.Number, without.Members, elsewhere.Lacking = 3, good.Members[1:], nil
	for _, v := range []View{old, without, elsewhere} {
		if err := m.suits(v); err == nil {
			t.Errorf("%+v was taken", v)
		}
	}
}
