package outsider

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// listener is on the honest side: it was let in, and hears all that the nodes pass on. It holds and says nothing, as a relay.
type listener struct {
	host *p2p.Host
	run  wire.RunID
	work sync.WaitGroup

	mu      sync.Mutex
	strange map[wire.PeerID]bool      // the outsider's names
	first   map[wire.Digest]time.Time // when a message came first
	kept    [][]byte                  // messages of nodes, to replay
	records map[wire.PeerID]hello.Signed
	members []member.Certificate
	hears   hearing
}

// hearing is what the listener heard.
type hearing struct {
	Honest    int `json:"honest"`    // messages of nodes, each once
	Strangers int `json:"strangers"` // that the outsider wrote
	Again     int `json:"again"`     // of nodes, that came again long after they had come
}

const (
	// againAfter is later than gossip brings a message on all its ways.
	againAfter = 10 * time.Second
	// mostKept bounds the messages that are replayed.
	mostKept = 512
)

// listen joins a run with an invite, and connects to its nodes.
func listen(ctx context.Context, k knowledge, pass member.Pass, nodes []string) (*listener, error) {
	key := keyOf("listener", 0)
	c, err := pass.Admit(k.run, key)
	if err != nil {
		return nil, err
	}
	record, err := hello.Sign(key, hello.Record{
		Protocol: hello.Protocol, Run: k.run, Seq: 1, Role: hello.Observer, Precision: "f32",
		Agent: "atoll/listener", StartedMs: k.startedMs, Stateless: true, Certificate: c.Encode(),
	})
	if err != nil {
		return nil, err
	}
	host, err := p2p.New(p2p.Config{
		Key: key, Run: k.run, Profile: p2p.Local, Agent: "atoll/listener",
		Record: func() hello.Signed { return record },
		Check:  func(wire.PeerID, []byte) error { return nil }, // it wants to hear what should not have come
	})
	if err != nil {
		return nil, err
	}
	l := &listener{host: host, run: k.run, strange: map[wire.PeerID]bool{}, first: map[wire.Digest]time.Time{}, records: map[wire.PeerID]hello.Signed{}}
	for i := range poolKeys {
		l.strange[wire.PeerIDOf(keyOf("author", i))] = true
	}
	l.work.Go(l.follow)
	for _, addr := range nodes {
		if _, err := host.Dial(ctx, addr); err != nil {
			l.close()
			return nil, fmt.Errorf("the listener is not let in: %w", err)
		}
	}
	return l, nil
}

func (l *listener) close() error {
	err := l.host.Close()
	l.work.Wait()
	return err
}

// follow records what comes, until the host closes.
func (l *listener) follow() {
	for e := range l.host.Events() {
		l.mu.Lock()
		switch e := e.(type) {
		case p2p.PeerUp:
			l.meet(e.ID, e.Signed, e.Record)
		case p2p.RecordChanged:
			l.meet(e.ID, e.Signed, e.Record)
		case p2p.Message:
			l.message(e.ID, e.Data, time.Now())
		case p2p.Has:
			if e.Brought {
				l.again(e.ID, time.Now())
			}
		}
		l.mu.Unlock()
	}
}

func (l *listener) meet(id wire.PeerID, signed hello.Signed, r hello.Record) {
	l.records[id] = signed
	if c, err := member.CertificateIn(r); err == nil {
		l.members = append(l.members, c)
	}
}

// message counts a message that a node brought. The caller holds the lock.
func (l *listener) message(id wire.Digest, data []byte, now time.Time) {
	m, err := wire.Decode(data)
	if err != nil || l.strange[authorOf(m)] {
		l.hears.Strangers++ // what is no message at all is nobody else's
		return
	}
	if _, known := l.first[id]; known {
		l.again(id, now)
		return
	}
	l.first[id] = now
	l.hears.Honest++
	if len(l.kept) < mostKept {
		l.kept = append(l.kept, data)
	}
}

// again counts a further copy of a message, if it came long ago. The caller holds the lock.
func (l *listener) again(id wire.Digest, now time.Time) {
	if first, known := l.first[id]; known && now.Sub(first) > againAfter {
		l.hears.Again++
	}
}

// authorOf is who wrote a message; nobody for an equivocation proof, which proves itself.
func authorOf(m wire.Message) wire.PeerID {
	switch {
	case m.Header != nil:
		return m.Header.Header.Author
	case m.Heartbeat != nil:
		return m.Heartbeat.Author
	}
	return wire.PeerID{}
}

// heard are messages of nodes, the first that came.
func (l *listener) heard() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept
}

// met are the records of the nodes and their certificates.
func (l *listener) met() (records []hello.Signed, members []member.Certificate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.records {
		records = append(records, r)
	}
	return records, l.members
}

// count is what was heard so far.
func (l *listener) count() hearing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hears
}

// bystander listens at an address that has to do with no run, and counts who dials it.
type bystander struct {
	net.Listener
	dials atomic.Int64
	work  sync.WaitGroup
}

func stand() (*bystander, error) {
	l, err := net.Listen("tcp", "127.0.0.77:0")
	if err != nil {
		return nil, err
	}
	b := &bystander{Listener: l}
	b.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.dials.Add(1)
			c.Close()
		}
	})
	return b, nil
}

func (b *bystander) close() error {
	err := b.Close()
	b.work.Wait()
	return err
}

// multiaddr is where it listens.
func (b *bystander) multiaddr() string {
	a := b.Addr().(*net.TCPAddr)
	return fmt.Sprintf("/ip4/%s/tcp/%d", a.IP, a.Port)
}
