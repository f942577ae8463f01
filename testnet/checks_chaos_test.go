package testnet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// lived is a node with one process that saw the whole run of so many seconds.
func lived(index, seconds int, rss func(second int) float64) *member {
	l := &life{seen: true, final: true, last: status.Snapshot{Identity: status.Identity{Self: "ab" + string(rune('0'+index))}, Agreement: status.Agreement{Finished: true}}}
	for s := range seconds {
		l.usage = append(l.usage, usage{at: time.Duration(s) * time.Second, rss: rss(s), goroutines: 100, files: 40})
	}
	return &member{index: index, lives: []*life{l}}
}

func flat(int) float64 { return 100 << 20 }

func TestUsageIsFlat(t *testing.T) {
	fills := func(s int) float64 { // until it is warm
		if s < 20 {
			return 1 << 20
		}
		return 100 << 20
	}
	leaks := func(s int) float64 { return float64(100+2*s) * (1 << 20) }
	comes := lived(0, 150, func(s int) float64 { // without the run at first
		if s < 60 {
			return 1 << 20
		}
		return 100 << 20
	})
	for s := range 60 {
		comes.lives[0].usage[s].joining = true
	}
	for name, c := range map[string]struct {
		members []*member
		judged  bool
		passed  bool
	}{
		"joins":        {[]*member{comes}, true, true},
		"flat":         {[]*member{lived(0, 90, flat), lived(1, 90, fills)}, true, true},
		"leak":         {[]*member{lived(0, 90, flat), lived(1, 90, leaks)}, true, false},
		"short":        {[]*member{lived(0, 40, leaks)}, false, false},
		"died between": {[]*member{{lives: []*life{lived(0, 90, leaks).lives[0], {}}}}, false, false},
	} {
		got := (&world{members: c.members}).checkUsage()
		if (got != nil) != c.judged || got != nil && got.Passed != c.passed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	handles := lived(0, 90, flat)
	for i := range handles.lives[0].usage {
		handles.lives[0].usage[i].files = float64(i)
	}
	if got := (&world{members: []*member{handles}}).checkUsage(); got.Passed {
		t.Errorf("descriptors leak: %+v", got)
	}
}

func TestUsageIsNotedOncePerStatus(t *testing.T) {
	l := &life{began: time.Unix(100, 0)}
	for _, second := range []int64{101, 101, 102} {
		l.last = status.Snapshot{Identity: status.Identity{At: time.Unix(second, 0)}, Process: status.Process{RSSBytes: 5, Goroutines: 7, OpenFiles: 9}}
		l.use()
	}
	if len(l.usage) != 2 || l.usage[1] != (usage{at: 2 * time.Second, rss: 5, goroutines: 7, files: 9}) {
		t.Errorf("%+v", l.usage)
	}
}

func blame(kind, peer string, at time.Time) status.Event {
	return status.Event{Kind: kind, Peer: peer, At: at}
}

func TestCorruptionIsBlamedOnTheRightNode(t *testing.T) {
	flipped := time.Unix(1000, 0)
	later, before := flipped.Add(2*time.Second), flipped.Add(-time.Second)
	for name, c := range map[string]struct {
		own, other []status.Event
		passed     bool
	}{
		"finds out":         {[]status.Event{blame(eventDamaged, "ab0", later)}, nil, true},
		"is told":           {[]status.Event{blame(eventWrong, "ab0", later)}, []status.Event{blame(eventWrong, "ab0", later)}, true},
		"never":             {nil, []status.Event{blame(eventWrong, "ab0", later)}, false},
		"before it was":     {[]status.Event{blame(eventDamaged, "ab0", before)}, nil, false},
		"blames the other":  {[]status.Event{blame(eventDamaged, "ab0", later), blame(eventWrong, "ab1", later)}, nil, false},
		"other blames self": {[]status.Event{blame(eventDamaged, "ab0", later)}, []status.Event{blame(eventDamaged, "ab1", later)}, false},
	} {
		a, b := lived(0, 1, flat), lived(1, 1, flat)
		a.lives[0].last.Events, b.lives[0].last.Events = c.own, c.other
		w := &world{members: []*member{a, b}, corrupted: []corruption{{a, flipped}}}
		if got := w.checkCorruptions(); got.Passed != c.passed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (&world{}).checkCorruptions(); got != nil {
		t.Errorf("nothing was corrupted: %+v", got)
	}
}

func TestRecoveries(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	m := lived(0, 1, flat)
	m.lives[0].began, m.lives[0].ended = at(0), at(101)
	for name, c := range map[string]struct {
		r      recovery
		passed bool
		text   string
	}{
		"merged":          {recovery{kind: merges, at: at(50), took: 3 * time.Second}, true, "one chain after a partition in 3.0 s"},
		"woke":            {recovery{kind: wakes, member: m, at: at(50), took: time.Second}, true, "after a pause in 1.0 s"},
		"never merged":    {recovery{kind: merges, at: at(50)}, false, "never showed one chain after 50s"},
		"never woke":      {recovery{kind: wakes, member: m, at: at(50)}, false, "node0 contributed nothing after 50s"},
		"just at the end": {recovery{kind: merges, at: at(95)}, true, ""},
	} {
		w := &world{began: began, ended: at(100), members: []*member{m}, recoveries: []*recovery{&c.r}}
		if got := w.checkRecoveries(); got.Passed != c.passed || !strings.Contains(got.Detail, c.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A process that came back and did nothing for the rest of a long run.
func TestRestartThatContributesNothing(t *testing.T) {
	m := lived(0, 1, flat)
	first := *m.lives[0]
	first.killed, m.lives = true, []*life{&first, m.lives[0]}
	m.lives[1].began = time.Unix(1000, 0)
	w := &world{members: []*member{m}, counts: counts{kills: 1}, ended: time.Unix(1100, 0)}
	if got := w.checkRecoveries(); got.Passed || !strings.Contains(got.Detail, "node0 contributed nothing after its restart") {
		t.Errorf("%+v", got)
	}
	m.lives[1].last.JoinS = 4
	if got := w.checkRecoveries(); !got.Passed || got.Detail != "back after a restart in 4.0 s" {
		t.Errorf("%+v", got)
	}
}

// A calm run ends at its budget; one that lost tokens ends when its poorest
// fragment is there.
func TestBudget(t *testing.T) {
	w := &world{members: make([]*member, 2)}
	w.genesis.Batch, w.genesis.Model.Context = 1, 10 // a step of 2 learners is 20 tokens
	for name, c := range map[string]struct {
		stepMs       float64
		folded, lost uint64
		fragments    []uint64
		passed       bool
	}{
		"met":                              {200, 1020, 0, []uint64{1020, 1020}, true},
		"missed":                           {200, 999, 0, []uint64{999, 999}, false},
		"exceeded":                         {200, 1021, 0, []uint64{1010, 1032}, false},
		"two more before a heartbeat came": {40, 1060, 0, []uint64{1060, 1060}, true},
		"three more":                       {40, 1061, 0, []uint64{1060, 1062}, false},
		"lost unevenly":                    {200, 1100, 90, []uint64{1020, 1180}, true},
		"lost and exceeded":                {200, 1100, 90, []uint64{1021, 1179}, false},
		"lost and missed":                  {200, 1100, 90, []uint64{999, 1201}, false},
	} {
		w.calibration.PaceMs = c.stepMs
		r := Report{Tokens: Tokens{TokensBudget: 1000, TokensFolded: c.folded, TokensLost: c.lost}}
		got := w.checkBudget(r, account{chain: &chain{params: slices.Repeat([]uint64{1}, len(c.fragments)), tokens: c.fragments}})
		if got.Passed != c.passed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestLostOnlyByKills(t *testing.T) {
	a := account{chain: &chain{params: []uint64{1}}, entries: []entry{{name: "node0", trained: 100, folded: []uint64{90}, discarded: []uint64{0}, lostHere: []uint64{0}, unpublished: []uint64{4}}}}
	m := lived(0, 1, flat)
	w := &world{members: []*member{m}}
	w.genesis.Outer.H, a.entries[0].perStep = 1, 2
	if got := w.checkLost(a); got.Passed || !strings.Contains(got.Detail, "node0 6 tokens by 0 kills") {
		t.Errorf("%+v", got)
	}
	m.lives[0].killed = true
	if got := w.checkLost(a); !got.Passed {
		t.Errorf("%+v", got)
	}
	a.entries[0].trained += 3 // a kill explains 8, not 9
	if got := w.checkLost(a); got.Passed || !strings.Contains(got.Detail, "9 tokens by 1 kill; these kills explain at most 8") {
		t.Errorf("%+v", got)
	}
	m.lives[0].plan = 2 // steps of a delta
	if got := w.checkLost(a); !got.Passed {
		t.Errorf("%+v", got)
	}
	a.entries[0].unpublished[0] = 13
	if got := w.checkLost(a); !got.Passed || strings.Contains(got.Detail, "node0") {
		t.Errorf("%+v", got)
	}
}

// A run whose model got worse fails, unless members lie to make it so.
func TestModelIsNoWorse(t *testing.T) {
	curve := func(values ...float32) *member {
		m := lived(0, 0, nil)
		for _, v := range values {
			m.newest().last.History = append(m.newest().last.History, status.Point{Val: v})
		}
		return m
	}
	liar := curve()
	liar.inverted = true
	for name, c := range map[string]struct {
		members []*member
		passed  bool
	}{
		"learned":  {[]*member{curve(5.5, 3), curve(5.5, 4)}, true},
		"diverged": {[]*member{curve(5.5, 3), curve(5.5, 97)}, false},
		"attacked": {[]*member{liar, curve(5.5, 97)}, true},
	} {
		w := &world{members: c.members}
		if found := w.checkModel(); (found == nil) != c.passed || found != nil && (found.Passed || !strings.Contains(found.Detail, "at first 5.5")) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
