package natlab

import (
	"bufio"
	"context"
	"crypto/ed25519"
	endian "encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

// member is a peer of a run that does not train: it sends heartbeats, and asks the next one for bulk.
type member struct {
	host       *p2p.Host
	run        wire.RunID
	key        ed25519.PrivateKey
	heartbeat  wire.Heartbeat // the last own one
	heartbeats atomic.Uint64  // of others that came
	bulk       atomic.Uint64  // bytes that came
	placed     chan error
}

const (
	memberHeartbeat = time.Second // what the period is in a run of fifty
	memberBulk      = 64 << 10

	memberFragments = 24 // as large runs have
)

// newMember starts a member of the run of a link.
func newMember(run wire.RunID, i int) (*member, error) {
	seed := make([]byte, ed25519.SeedSize)
	endian.BigEndian.PutUint64(seed, uint64(i+1))
	key := ed25519.NewKeyFromSeed(seed)
	signed, err := hello.Sign(key, hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin, Precision: "f32", StartedMs: 1000,
	})
	if err != nil {
		return nil, err
	}
	m := &member{run: run, key: key, placed: make(chan error, 1)}
	m.heartbeat = wire.Heartbeat{
		Author: wire.PeerIDOf(key), Incarnation: 1000, State: wire.Training, PeriodMs: uint32(memberHeartbeat.Milliseconds()),
		Closed: make([]uint32, memberFragments), Unpublished: make([]uint64, memberFragments),
	}
	m.host, err = p2p.New(p2p.Config{
		Key: key, Run: run, Profile: p2p.WAN, Record: func() hello.Signed { return signed },
		Listen: []string{"/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"}, Check: func(_ wire.PeerID, raw []byte) error { _, err := wire.Open(run, raw); return err },
	})
	if err != nil {
		return nil, err
	}
	m.host.Handle(func(context.Context, wire.PeerID, []byte) []byte {
		return append([]byte{byte(wire.OK)}, make([]byte, memberBulk)...)
	})
	go func() {
		for e := range m.host.Events() {
			switch e := e.(type) {
			case p2p.Message:
				m.heartbeats.Add(1)
			case p2p.Reserved:
				m.placed <- e.Err
			}
		}
	}()
	return m, nil
}

// enter connects a member to the relay that a link names, and gets a place there.
func (m *member) enter(ctx context.Context, link joinlink.Link) error {
	relay, err := m.host.Dial(ctx, link.Peers[0])
	for err != nil && ctx.Err() == nil { // libp2p takes only so many connections of one address in a second
		time.Sleep(time.Second)
		relay, err = m.host.Dial(ctx, link.Peers[0])
	}
	if err != nil {
		return err
	}
	m.host.Reserve(relay)
	select {
	case err := <-m.placed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// works sends heartbeats, and asks another member for bulk, until ctx ends.
func (m *member) works(ctx context.Context, other *member) {
	var both sync.WaitGroup
	both.Go(func() {
		for ctx.Err() == nil {
			if b, err := m.host.Call(ctx, other.host.ID(), []byte("bulk"), 2*memberBulk); err == nil {
				m.bulk.Add(uint64(len(b)))
			}
		}
	})
	both.Go(func() {
		tick := time.NewTicker(memberHeartbeat)
		defer tick.Stop()
		for ctx.Err() == nil {
			m.heartbeat.Seq++
			if err := m.host.Publish(wire.EncodeHeartbeat(m.key, m.run, m.heartbeat)); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	both.Wait()
}

// crowd has so many members meet through the relay of a link, all in this process. It says ready,
// and after so many seconds of work how many bytes of bulk and how many heartbeats came.
func crowd(count, seconds, text string) error {
	n, bad := strconv.Atoi(count)
	span, worse := time.ParseDuration(seconds + "s")
	link, worst := joinlink.Parse(text)
	if err := errors.Join(bad, worse, worst); err != nil {
		return err
	}
	link.Peers = slices.DeleteFunc(link.Peers, func(a string) bool {
		return !strings.Contains(a, "/tcp/") || strings.Contains(a, "127.0.0.1") || strings.Contains(a, "/ip6/")
	})
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout+span)
	defer cancel()
	var all []*member
	for i := range n {
		m, err := newMember(link.Run, i)
		if err != nil {
			return err
		}
		defer m.host.Close()
		if err := m.enter(ctx, link); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		all = append(all, m)
	}
	for i, m := range all {
		to := all[(i+1)%n].host
		if _, ok := m.host.Path(to.ID()); ok {
			continue
		}
		if err := m.host.DialPeer(ctx, to.ID(), to.Reach().Outside); err != nil {
			return fmt.Errorf("member %d to the next: %w", i, err)
		}
	}
	fmt.Println("ready")
	working, stop := context.WithTimeout(ctx, span)
	defer stop()
	var work sync.WaitGroup
	began := time.Now()
	for i, m := range all {
		work.Go(func() { m.works(working, all[(i+1)%n]) })
	}
	<-working.Done()
	took := time.Since(began).Seconds()
	var bulk, heartbeats uint64
	for _, m := range all {
		bulk, heartbeats = bulk+m.bulk.Load(), heartbeats+m.heartbeats.Load()
	}
	work.Wait()
	_, err := fmt.Printf("%.0f %.4f\n", float64(bulk)/took, float64(heartbeats)/float64(n*(n-1))/(took/memberHeartbeat.Seconds()))
	return err
}

// throng runs a crowd on a machine, and returns bytes/s of bulk and the part of all heartbeats that
// came. during is called when all are connected and at work.
func throng(t *testing.T, l *Lab, machine, link string, n int, span time.Duration, during func()) (bulk, heartbeats float64) {
	t.Helper()
	cmd := inside(l, machine, "crowd", strconv.Itoa(n), fmt.Sprint(span.Seconds()), link)
	out, err := cmd.StdoutPipe()
	var said strings.Builder
	cmd.Stderr = &said
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the crowd on %s says %q\n%s", machine, lines.Text(), said.String())
	}
	during()
	if !lines.Scan() {
		t.Fatalf("the crowd on %s ended: %s", machine, said.String())
	}
	if _, err := fmt.Sscan(lines.Text(), &bulk, &heartbeats); err != nil {
		t.Fatalf("the crowd on %s says %q: %v", machine, lines.Text(), err)
	}
	return bulk, heartbeats
}

// maxRelayMemory is what a relay of fifty may take, in bytes.
const maxRelayMemory = 100 << 20

// A relay of fifty who have nothing else stays small and within its budget. What arrives when is
// tested in virtual time (gossip/p2p): here that would measure the machine.
func TestRelayOfFifty(t *testing.T) {
	const budget = 10_000_000 / 8
	l := alone(t, Net{Machines: []string{"vps"}, Nets: []Net{{Router: "rb", NAT: ScramblePorts, Machines: []string{"b"}}}})
	if err := l.Run("--tokens", "1e5"); err != nil {
		t.Fatal(err)
	}
	relay, link, err := l.Relay(within(t, stepTimeout), "vps", "--up", "10mbit")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	bulk, heartbeats := throng(t, l, "b", link, 50, 20*time.Second, func() {
		for range 20 {
			time.Sleep(time.Second)
			now, err := relay.Memory()
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, now)
		}
	})
	t.Logf("bulk has %.2f of the budget, %.3f of the heartbeats came, the relay takes %d MiB", bulk/budget, heartbeats, most>>20)
	if bulk > 1.05*budget || bulk == 0 || heartbeats == 0 {
		t.Error("the relay passes on nothing, or more than its budget")
	}
	if most > maxRelayMemory {
		t.Errorf("the relay takes %d MiB", most>>20)
	}
}

// Payloads of two who reach each other through a relay alone fill most of its link.
func TestPayloadsThroughARelay(t *testing.T) {
	const rate = 1_000_000 // bytes/s
	l := alone(t, Net{Machines: []string{"vps"}, Nets: []Net{{Router: "rb", NAT: ScramblePorts, Machines: []string{"b"}}}})
	if err := l.Run("--tokens", "1e5"); err != nil {
		t.Fatal(err)
	}
	_, link, err := l.Relay(within(t, stepTimeout), "vps")
	if err == nil {
		err = l.Slow("vps", rate)
	}
	if err != nil {
		t.Fatal(err)
	}
	bulk, _ := throng(t, l, "b", link, 2, 20*time.Second, func() {})
	t.Logf("payloads have %.2f of the relay's link", bulk/rate)
	if bulk < 0.8*rate {
		t.Error("less than 0.8 of the link")
	}
}
