package outsider

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// attack is something that the outsider does to each node all the time.
type attack struct {
	name, about string
	lanes       int           // tries at once, at each node
	every       time.Duration // from the begin of one try of a lane to that of its next
	try         func(ctx context.Context, o *outsider, t target, n int) error
	admitted    bool // nodes let it in, and pass on what it says within bounds: that is the rule
}

// Rates of what the outsider does. A node takes 25 connections a second from one address of the internet (p2p, connsRate), and
// none of the limit from this machine: the outsider keeps to it by itself. It holds as many as a node keeps from one address
// (connsAddress, 64), and leaves a few for those that end. What it does beyond takes the outsider's time more than the nodes'.
const (
	connsPerSecond   = 25
	connsHeld        = 60
	connsAgain       = connsHeld * time.Second / connsPerSecond // from one connection of a lane to the next
	connHeldFor      = 2 * time.Second                          // of those that come and go: fifty at a time
	streamsTried     = 200                                      // of each connection: more than a node takes of a peer (streamsPeer, 160)
	streamsAgain     = time.Second                              // those that the node has ended are opened again
	floodLanes       = 8
	floodEvery       = 100 * time.Millisecond
	heartbeatsAtOnce = 10 // of one that was let in: many times what a node passes on of an author (limit.Limiter)
	floodMessages    = 25 // at once: 2,000 messages a second at each node, the most that 128 members say in a fast run
)

// replays is the attack that says again what nodes said.
const replays = "replay"

var attacks = []attack{
	{"flood", "8 connections that write 2,000 gossip messages a second, headers and heartbeats that nobody admitted", floodLanes, time.Second, flood, false},
	{"half-open", "60 connections that open as many streams as they may, of every protocol and of none, and say half a request on each", connsHeld, connsAgain, halfOpen, false},
	{"connections", "25 connections a second, half of them without a word and half encrypted under fresh keys, held for 2 s", connsPerSecond * int(connHeldFor/time.Second), connHeldFor, connect, false},
	{"forged", "25 handshakes a second with certificates of a wrong owner, of a wrong run, of another node, garbled, cut, none", connsPerSecond, time.Second, forge, false},
	{"invites", "25 handshakes a second with invites of the owner that have expired, or are used by the node that they are for", connsPerSecond, time.Second, misuse, false},
	{replays, "25 handshakes a second with records of honest nodes, and 250 of their gossip messages a second", connsPerSecond, time.Second, replay, false},
	{"used-up", "8 connections, each with a key that came by an invite for one node, which is used: they are let in, and say 800 heartbeats a second", floodLanes, time.Second, useUp, true},
	{"addresses", "25 handshakes a second whose records and identities name addresses of a machine that has to do with nobody", connsPerSecond, time.Second, misdirect, false},
}

func attackNamed(name string) (attack, bool) {
	for _, a := range attacks {
		if a.name == name {
			return a, true
		}
	}
	return attack{}, false
}

// flood writes gossip on a stream for as long as the node lets it.
func flood(ctx context.Context, o *outsider, t target, n int) error {
	l, err := o.call(ctx, t, "flood", n)
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := o.halfOpen(ctx, l, gossipProtocol, nil)
	if err != nil {
		return err
	}
	return l.again(ctx, func(round int) error { return o.publish(s, o.pool, (n+round)*floodMessages, floodMessages) })
}

// again does something now and each floodEvery, with the number of times that it was done before, until the connection ends.
func (l *line) again(ctx context.Context, do func(round int) error) error {
	tick := time.NewTicker(floodEvery)
	defer tick.Stop()
	for round := 0; ; round++ {
		if err := do(round); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-l.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// halfOpen opens streams in all ways that there are, and opens those again that the node ends.
func halfOpen(ctx context.Context, o *outsider, t target, n int) error {
	l, err := o.call(ctx, t, "half-open", n)
	if err != nil {
		return err
	}
	defer l.Close()
	ids, err := l.protocols(ctx)
	if err != nil {
		return err
	}
	ids = append(ids, "", "/outsider/1")
	for end := time.Now().Add(lineHeld); time.Now().Before(end); l.wait(ctx, streamsAgain) {
		for i := range streamsTried {
			if _, err := o.halfOpen(ctx, l, ids[(n+i)%len(ids)], []byte{0, 0, 0}); err != nil {
				break
			}
		}
		if l.IsClosed() {
			return nil
		}
	}
	return nil
}

// connect holds a connection, encrypted or not.
func connect(ctx context.Context, o *outsider, t target, n int) error {
	if n%2 == 0 {
		s, err := socket(ctx, t)
		if err != nil {
			return err
		}
		defer s.Close()
		o.did.sockets.Add(1)
		if err := s.SetReadDeadline(time.Now().Add(connHeldFor)); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { s.Close() })()
		_, _ = io.Copy(io.Discard, s) // ends with the time, or when the node has enough
		return nil
	}
	l, err := o.call(ctx, t, "connections", n)
	if err != nil {
		return err
	}
	defer l.Close()
	l.wait(ctx, connHeldFor)
	return nil
}

// forge shows a certificate that is none.
func forge(ctx context.Context, o *outsider, t target, n int) error {
	return o.show(ctx, t, "forged", n, forgeries[n%len(forgeries)])
}

// misuse shows a certificate by an invite that is of no use.
func misuse(ctx context.Context, o *outsider, t target, n int) error {
	return o.show(ctx, t, "invites", n, unusable[n%len(unusable)])
}

// replayed is how many messages of honest nodes go with a handshake.
const replayed = 10

// replay shows the record of a node, and says again what nodes said.
func replay(ctx context.Context, o *outsider, t target, n int) error {
	l, err := o.call(ctx, t, "replay", n)
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := o.halfOpen(ctx, l, gossipProtocol, nil)
	if err != nil {
		return err
	}
	if heard := o.heard(); len(heard) > 0 {
		if err := o.publish(s, heard, n*replayed, replayed); err != nil {
			return err
		}
	}
	if len(o.records) == 0 {
		return nil
	}
	return o.greet(ctx, l, o.records[n%len(o.records)].Encode())
}

// useUp shows a certificate by an invite that is used, and sends heartbeats far too often.
func useUp(ctx context.Context, o *outsider, t target, n int) error {
	key := keyOf("author", n%poolKeys) // the listener knows these
	l, err := call(ctx, t, key)
	if err != nil {
		return err
	}
	defer l.Close()
	o.did.lines.Add(1)
	if err := o.greet(ctx, l, o.record(key, admitted(o.used, o.run, key).Encode()).Encode()); err != nil {
		return err
	}
	s, err := o.halfOpen(ctx, l, gossipProtocol, nil)
	if err != nil {
		return err
	}
	if err := s.SetDeadline(time.Time{}); err != nil { // this line stays
		return err
	}
	return l.again(ctx, func(round int) error {
		heartbeats := make([][]byte, heartbeatsAtOnce)
		for i := range heartbeats {
			heartbeats[i] = o.heartbeat(key, n+round*heartbeatsAtOnce+i)
		}
		return o.publish(s, heartbeats, 0, heartbeatsAtOnce)
	})
}

// misdirect names addresses at which somebody else listens: in the record, to identify, and by a push of it.
func misdirect(ctx context.Context, o *outsider, t target, n int) error {
	key := keyOf("addresses", n)
	l, err := call(ctx, t, key, o.elsewhere)
	if err != nil {
		return err
	}
	defer l.Close()
	o.did.lines.Add(1)
	if _, err := o.halfOpen(ctx, l, pushProtocol, l.identity()); err != nil {
		return err
	}
	return o.greet(ctx, l, o.record(key, unusable[n%len(unusable)].make(o.knowledge, key), o.elsewhere+"/p2p/"+peerIDOf(key).String()).Encode())
}

// call connects to a node under a key of a purpose, and counts it.
func (o *outsider) call(ctx context.Context, t target, purpose string, n int) (*line, error) {
	l, err := call(ctx, t, keyOf(purpose, n))
	if err == nil {
		o.did.lines.Add(1)
	}
	return l, err
}

// show connects and shows a certificate of a kind.
func (o *outsider) show(ctx context.Context, t target, purpose string, n int, f forgery) error {
	key := keyOf(purpose, n)
	l, err := call(ctx, t, key)
	if err != nil {
		return err
	}
	defer l.Close()
	o.did.lines.Add(1)
	return o.greet(ctx, l, o.record(key, f.make(o.knowledge, key)).Encode())
}

// greet shows a record, and counts what the node makes of it.
func (o *outsider) greet(ctx context.Context, l *line, record []byte) error {
	verdict, err := l.hello(ctx, record)
	switch {
	case err != nil:
		return fmt.Errorf("handshake: %w", err)
	case verdict == "":
		o.did.admitted.Add(1)
		return nil
	}
	o.did.refused.Add(1)
	o.did.record(verdict)
	return nil
}

// halfOpen opens a stream, and counts it.
func (o *outsider) halfOpen(ctx context.Context, l *line, id protocol.ID, then []byte) (network.MuxedStream, error) {
	s, err := l.halfOpen(ctx, id, then)
	if err == nil {
		o.did.streams.Add(1)
	}
	return s, err
}

// publish writes some messages of a pool, from the n-th on, and counts them.
func (o *outsider) publish(s network.MuxedStream, pool [][]byte, n, count int) error {
	messages := make([][]byte, count)
	for i := range messages {
		messages[i] = pool[(n+i)%len(pool)]
	}
	b := publication(o.topic, messages...)
	if _, err := s.Write(b); err != nil {
		return err
	}
	o.did.messages.Add(int64(count))
	o.did.bytes.Add(int64(len(b)))
	return nil
}
