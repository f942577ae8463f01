package p2p

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/gossip/wire"
)

// crowd is nodes behind firewalls that have nothing but one relay. Each sends heartbeats, and asks the next
// one for bulk all the time.
type crowd struct {
	all    []*Host
	began  time.Time
	counts []int           // heartbeats that came, by who got them
	oldest []time.Duration // of those
	bulk   []int           // bytes that came
}

// long is whether tests play all that they can, and not what shows the most in little time.
var long = os.Getenv("ATOLL_LONG") != ""

// crowdSize is small, unless ATOLL_LONG=1 asks for many: all of them send to all.
var crowdSize = func() int {
	if long {
		return 50
	}
	return 12
}()

const (
	crowdBudget    = 10_000_000 / 8 // bytes/s that the relay passes on
	crowdHeartbeat = time.Second    // the period of so many
	crowdBulk      = 64 << 10       // bytes of a payload
	crowdWarm      = 5 * time.Second
	crowdSpan      = 20 * time.Second // what is counted, after that
)

// counted reports whether now is the time that counts.
func (c *crowd) counted() bool {
	d := time.Since(c.began)
	return d > crowdWarm && d < crowdWarm+crowdSpan
}

// come has one more node come to the relay.
func (c *crowd) come(w *world, relay *Host, config Config) {
	h := w.hostWith(config, func(h *Host) {
		alone(h)
		noPunching(h)
		h.openUDP = firewalled(h.openUDP)
	})
	i := len(c.all)
	c.all = append(c.all, h)
	dial(w.t, h, relay)
	placed(w.t, relay, h)
	h.Handle(func(_ context.Context, _ wire.PeerID, request []byte) []byte {
		return append([]byte{byte(wire.OK)}, make([]byte, binary.BigEndian.Uint32(request))...)
	})
	go func() {
		for e := range h.Events() {
			if m, ok := e.(Message); ok && c.counted() {
				c.counts[i]++
				c.oldest[i] = max(c.oldest[i], time.Since(c.began)-time.Duration(binary.BigEndian.Uint64(m.Data)))
			}
		}
	}()
}

// ask asks a node for so many bytes, and says how long that took.
func ask(ctx context.Context, h *Host, of wire.PeerID, size uint32) (time.Duration, error) {
	began := time.Now()
	_, err := h.Call(ctx, of, binary.BigEndian.AppendUint32(nil, size), 2*crowdBulk)
	return time.Since(began), err
}

// work has a node send heartbeats, and ask the next one for bulk, until ctx ends.
func (c *crowd) work(ctx context.Context, i int) {
	h, other := c.all[i], c.all[(i+1)%len(c.all)].ID()
	var both sync.WaitGroup
	both.Go(func() {
		for ctx.Err() == nil {
			if _, err := ask(ctx, h, other, crowdBulk); err == nil && c.counted() {
				c.bulk[i] += crowdBulk
			}
		}
	})
	both.Go(func() {
		for ctx.Err() == nil {
			heartbeat := binary.BigEndian.AppendUint64(nil, uint64(time.Since(c.began)))
			if err := h.Publish(append(heartbeat, make([]byte, 300+i)...)); err != nil {
				return // closed
			}
			time.Sleep(crowdHeartbeat)
		}
	})
	both.Wait()
}

// Nodes behind firewalls, with ATOLL_LONG=1 fifty of them, have nothing but one relay with 10
// Mbit/s. Heartbeats of all arrive at all, small calls are answered in time, and bulk gets what is
// left of the budget, each node its share.
func TestManyOverOneRelay(t *testing.T) {
	if testing.Short() {
		t.Skip("a dozen hosts take seconds")
	}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		config := newPersonN(1).config()
		config.Profile, config.RelayBytesPerSecond = WAN, crowdBudget
		relay := w.hostWith(config, alone)
		keepDrained(t, relay)
		c := &crowd{began: time.Now(), counts: make([]int, crowdSize), oldest: make([]time.Duration, crowdSize), bulk: make([]int, crowdSize)}
		for i := range crowdSize {
			config := newPersonN(i + 2).config()
			config.Profile = WAN
			c.come(w, relay, config)
		}
		for i, h := range c.all {
			through := c.all[(i+1)%crowdSize].Reach().Outside
			at := slices.IndexFunc(through, func(a string) bool { return strings.Contains(a, "/p2p-circuit/") })
			if _, err := h.Dial(t.Context(), through[at]); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		c.began = time.Now()
		for i := range c.all {
			all.Go(func() { c.work(ctx, i) })
		}
		time.Sleep(crowdWarm)
		relayed, since := relay.Stats().Relayed, time.Now()
		var slowest time.Duration
		for c.counted() || slowest == 0 {
			time.Sleep(crowdHeartbeat)
			took, err := ask(ctx, c.all[0], c.all[1].ID(), 10)
			if err != nil {
				t.Errorf("a small call through the relay: %v", err)
			}
			slowest = max(slowest, took)
		}
		c.check(t, slowest, float64(relay.Stats().Relayed-relayed)/time.Since(since).Seconds())
	})
}

// check looks at what came, with the slowest small call and the bytes/s that were relayed.
func (c *crowd) check(t *testing.T, slowest time.Duration, relayed float64) {
	sum := 0
	for _, b := range c.bulk {
		sum += b
	}
	share, heartbeats := float64(sum)/crowdSpan.Seconds()/crowdBudget, float64(crowdSize-1)*crowdSpan.Seconds()/crowdHeartbeat.Seconds()
	t.Logf("of %.0f heartbeats %d to %d came, the oldest after %v; a small call took %v at most", heartbeats, slices.Min(c.counts), slices.Max(c.counts), slices.Max(c.oldest), slowest)
	t.Logf("bulk got %.2f of the budget, each node %d to %d KiB; %.2f of it was relayed", share, slices.Min(c.bulk)>>10, slices.Max(c.bulk)>>10, relayed/crowdBudget)
	if float64(slices.Min(c.counts)) < 0.98*heartbeats || slices.Max(c.oldest) > crowdHeartbeat {
		t.Error("heartbeats are late or lost")
	}
	if share < 0.8 || 2*slices.Min(c.bulk) < sum/len(c.bulk) || relayed > 1.05*crowdBudget {
		t.Error("bulk does not share what is left of the budget")
	}
	if slowest > 3*time.Second {
		t.Error("small calls starve")
	}
}
