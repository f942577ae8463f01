package natlab

import (
	"os"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// lossy is a path that loses packets above so many bytes, towards a newcomer, from it, or both.
type lossy struct {
	name          string
	bytes         int
	towards, from bool
}

// Paths that keep nobody out, and cost little. All pass the first one.
var passable = []lossy{
	{"all", 9000, false, false},
	{"1400 both", 1400, true, true}, {"1280 towards", 1280, true, false}, {"1280 from", 1280, false, true}, {"1280 both", 1280, true, true},
}

const (
	largeIn     = 20 * time.Second // to be in
	largeTokens = "40e3"           // a minute and a half of two learners
	largeSpeed  = 0.9              // of the speed where all packets pass, at least
)

// Over a path that loses large packets without a word a newcomer takes the model of who trains, and both end as one, as fast as
// elsewhere.
func TestLargePacketsLost(t *testing.T) {
	speeds := make([]float64, len(passable))
	t.Run("paths", func(t *testing.T) {
		for i, c := range passable {
			t.Run(c.name, func(t *testing.T) { speeds[i] = trainOver(t, c) })
		}
	})
	for i, c := range passable {
		if speeds[i] < largeSpeed*speeds[0] {
			t.Errorf("%s: %.1f tokens/s, %.1f where all packets pass", c.name, speeds[i], speeds[0])
		}
	}
}

// trainOver has b join a, which trains, over such a path. It returns the tokens that both fold in a second until the run ends.
func trainOver(t *testing.T, c lossy) float64 {
	l := world(t, Net{Machines: []string{"a", "b"}})
	a, link := trainsBehind(t, l, c, largeTokens)
	began := time.Now()
	b := join(t, l, "b", link)
	had := uint64(0)
	await(t, b, "it trains on the model of a", func(s status.Snapshot) bool {
		had = s.TokensFolded
		return s.State == "training" && had > 0
	})
	took(t, "in", time.Since(began), largeIn)
	began = time.Now()
	endsAsOne(t, a, b)
	s, err := b.Final()
	if err != nil {
		t.Fatal(err)
	}
	speed := float64(s.TokensFolded-had) / time.Since(began).Seconds()
	t.Logf("%.1f tokens/s", speed)
	return speed
}

// trainsBehind starts a, which folds alone, and returns its link. What b is to reach it over loses packets.
func trainsBehind(t *testing.T, l *Lab, c lossy, tokens string) (a *Node, link string) {
	t.Helper()
	if err := l.DropLarge("b", c.bytes, c.towards, c.from); err != nil {
		t.Fatal(err)
	}
	if err := l.Run("--tokens", tokens); err != nil {
		t.Fatal(err)
	}
	a, err := l.First("a", quick...)
	if err != nil {
		t.Fatal(err)
	}
	link = linkOf(t, a)
	await(t, a, "some rounds", func(s status.Snapshot) bool { return s.TokensFolded > 1000 })
	return a, link
}

// Over a path that loses packets of atoll's size in both directions join names doctor, and doctor which packets pass; with the remedy
// that it names the newcomer takes the model of who trains.
func TestDoctorFindsWhatPasses(t *testing.T) {
	l := world(t, Net{Machines: []string{"a", "b"}})
	_, link := trainsBehind(t, l, lossy{"1100 both", 1100, true, true}, "1e9")
	b := join(t, l, "b", link)
	await(t, b, "it says that nothing comes", func(s status.Snapshot) bool {
		return strings.Contains(b.Log(), "`atoll doctor LINK` tells whether the way to it loses large packets")
	})
	kill(t, b)
	doctor(t, l, "b", link, map[string][2]string{"packets": {"loses packets of 1260 bytes without a word, and those of 1100 pass", "sudo ip link set dev eth0 mtu 1100"}})
	if _, err := l.places["b"].command("ip", "link", "set", "dev", "eth0", "mtu", "1100"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(b.Dir); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b = join(t, l, "b", link)
	await(t, b, "it trains on the model of a", func(s status.Snapshot) bool { return s.State == "training" && s.TokensFolded > 0 })
	took(t, "in", time.Since(began), largeIn)
}
