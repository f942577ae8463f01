package bulk

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// payload is a delta of the model small.
const payload = 190_000

// uplinkWorld is a node's link with peers at several distances.
type uplinkWorld struct {
	t     *testing.T
	pipe  *pipe
	up    *Uplink
	paths []*path
	sends sync.WaitGroup
	rng   *rand.Rand
}

// long plays all, with ATOLL_LONG=1.
var long = os.Getenv("ATOLL_LONG") != ""

func newUplinkWorld(t *testing.T, b bore, peers int) *uplinkWorld {
	w := &uplinkWorld{t: t, pipe: &pipe{bore: b}, up: NewUplink(0), rng: rand.New(rand.NewPCG(1, 2))}
	for i := range peers {
		w.paths = append(w.paths, newPath(w.pipe, w.up, time.Duration(i)*20*time.Millisecond))
	}
	return w
}

// holdBack gives every path a congestion window.
func (w *uplinkWorld) holdBack() {
	for _, p := range w.paths {
		p.tcp = newConnection()
	}
}

// transfer sends n bytes to a peer beside whatever else is sent, unless that is much.
func (w *uplinkWorld) transfer(p *path, n int) {
	if p.busy.Load() >= 8 {
		return
	}
	p.busy.Add(1)
	w.sends.Go(func() {
		defer p.busy.Add(-1)
		for ; n > 0; n -= Segment {
			p.send(w.t, min(n, Segment))
		}
	})
}

// bursts sends a payload to every peer at once, again and again, at this rate.
func (w *uplinkWorld) bursts(bytesPerSecond float64, d time.Duration) {
	pause := seconds(payload * float64(len(w.paths)) / bytesPerSecond)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
		for _, i := range w.rng.Perm(len(w.paths)) { // as requests come
			w.transfer(w.paths[i], payload)
			time.Sleep(time.Microsecond)
		}
	}
}

// shown is what the link was seen to carry when it was full, in bytes/s; 0 if it never was.
func (w *uplinkWorld) shown() float64 {
	rate, full := w.up.Rate()
	if !full {
		return 0
	}
	return rate
}

// settle lets everything arrive.
func (w *uplinkWorld) settle() {
	w.sends.Wait()
	time.Sleep(time.Minute)
}

var uplinkLinks = []bore{
	{rate: 0.625e6, delay: 300 * time.Millisecond},
	{rate: 2.5e6, delay: 80 * time.Millisecond},
	{rate: 5.7e6, delay: 80 * time.Millisecond},
	{rate: 12.5e6, delay: 80 * time.Millisecond},
	{rate: 0.625e6, delay: 300 * time.Millisecond, burst: Burst},
	{rate: 2.5e6, delay: 80 * time.Millisecond, burst: Burst},
	{rate: 12.5e6, delay: 80 * time.Millisecond, burst: Burst},
}

// farLinks are as far apart, or as near, as congestion windows notice most.
var farLinks = []bore{
	{rate: 12.5e6, delay: 300 * time.Millisecond},
	{rate: 12.5e6, delay: 20 * time.Millisecond},
	{rate: 2.5e6, delay: 300 * time.Millisecond},
	{rate: 0.625e6, delay: 20 * time.Millisecond},
}

// After a few bursts a link of which more is asked than it carries shows its rate. One of which
// less is asked shows that, or nothing: a congestion window that grows is never taken for a
// thin link. Where nothing but the pacers holds parts back, as no transport does, queues may
// stand that none of them sees, and the link shows nothing. ATOLL_LONG=1 has seven peers as well.
func TestUploadIsTheLinksRate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and minutes under the race detector")
	}
	for _, windows := range []bool{false, true} {
		for _, link := range append(uplinkLinks, farLinks...) {
			for _, share := range []float64{1.5, 0.5, 0.1} {
				for _, peers := range []int{1, 3, 7} {
					if peers > 3 && !long {
						continue
					}
					if peers > 3 && !windows || link.burst > 0 && windows {
						// So many that nothing holds back keep a queue that none of them
						// sees. Pacers that meet bursts let less pass than the link carries.
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						w := newUplinkWorld(t, link, peers)
						if windows {
							w.holdBack()
						}
						w.shows(share)
					})
				}
			}
		}
	}
}

// shows checks what the link shows of which so much of its rate is asked.
func (w *uplinkWorld) shows(share float64) {
	link, peers := w.pipe.bore, len(w.paths)
	five := seconds(5 * payload * float64(peers) / (share * link.rate))
	w.bursts(share*link.rate, max(five, 10*time.Second))
	const times = 3
	for i := range times {
		w.bursts(share*link.rate, 10*time.Second)
		rate, full := w.up.Rate()
		unseen := !full && share > 1 && w.paths[0].tcp != nil && i == times-1 // how soon depends on the order of parts
		if shown := rate / link.rate; full && shown < 0.8 || shown > 1.2 || unseen {
			w.t.Errorf("%v peers (windows: %v) ask %.2f MB/s (burst %.0f, %v) for %.1f of its rate: shown %.2f of it, full: %v",
				peers, w.paths[0].tcp != nil, link.rate/1e6, link.burst, link.delay, share, shown, full)
		}
	}
	w.settle()
}

func TestUploadFollowsTheLink(t *testing.T) {
	for _, share := range []float64{0.1, 1.5} {
		synctest.Test(t, func(t *testing.T) {
			const thick, thin = 12.5e6, 0.625e6
			w := newUplinkWorld(t, bore{rate: thick, delay: 80 * time.Millisecond}, 3)
			w.bursts(share*thick, 20*time.Second)
			w.pipe.setRate(thin)
			w.bursts(share*thick, 5*time.Second)
			if got := w.shown(); got < 0.8*thin || got > 1.2*thin {
				t.Errorf("five seconds after the fall to %.0f bytes/s: %.0f", thin, got)
			}
			w.sends.Wait()
			w.pipe.setRate(thick)
			w.bursts(thin/2, time.Minute)
			if got := w.shown(); got < 0.8*thick || got > 1.2*thick {
				t.Errorf("a minute after the rise to %.0f bytes/s: %.0f", thick, got)
			}
			w.settle()
		})
	}
}

// A peer whose own link is thin takes long. That says nothing of this node's link.
func TestUploadIsNotAThinPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUplinkWorld(t, bore{rate: 12.5e6, delay: 80 * time.Millisecond}, 3)
		w.paths[2].pipe = &pipe{bore: bore{rate: 0.625e6, delay: 80 * time.Millisecond}}
		w.bursts(1.2e6, 5*time.Second)
		for range 10 {
			w.bursts(1.2e6, 5*time.Second)
			if shown := w.shown() / w.pipe.rate; shown < 0.8 || shown > 1.2 {
				t.Errorf("shown %.2f of the link's rate", shown)
			}
		}
		w.settle()
	})
}

func TestUploadKeepsToTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newUplinkWorld(t, bore{rate: 2.5e6, delay: 80 * time.Millisecond}, 3)
		if got := w.shown(); got != 0 {
			t.Errorf("%v before anything was sent", got)
		}
		w.up.limit = 1e6
		w.bursts(1e6, 10*time.Second)
		if got := w.shown(); got != 1e6 {
			t.Errorf("%v with a limit of 1 MB/s", got)
		}
		w.settle()
	})
}

// Whatever is sent, and whenever, a link never looks thinner than it has looked
// before, unless it is.
func TestUploadNeverRunsAway(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		link := rapid.SampledFrom(uplinkLinks).Draw(r, "link")
		peers := rapid.IntRange(1, 5).Draw(r, "peers")
		seed := rapid.Uint64().Draw(r, "seed")
		longest := rapid.IntRange(1, 40).Draw(r, "longest in segments")
		load := rapid.Float64Range(0.01, 1.5).Draw(r, "load")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newUplinkWorld(t, link, peers)
			most := 0.
			for range 200 {
				n := 1 + rng.IntN(longest*Segment)
				w.transfer(w.paths[rng.IntN(peers)], n)
				time.Sleep(seconds(rng.ExpFloat64() * float64(n) / (load * link.rate)))
				shown := w.shown() / link.rate
				most = max(most, min(shown, 1))
				if shown < 0.7*most || shown > 1.25 {
					wrong = fmt.Sprintf("%.2f of the link's rate, before %.2f", shown, most)
				}
			}
			w.settle()
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}
