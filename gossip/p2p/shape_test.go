package p2p

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

// pipeConn is one end of a net.Pipe with the addresses that a manet.Conn has.
type pipeConn struct{ net.Conn }

func (pipeConn) LocalMultiaddr() ma.Multiaddr  { return nil }
func (pipeConn) RemoteMultiaddr() ma.Multiaddr { return nil }

// shapedPipe is a connection over a shaped link and the other end of it.
func shapedPipe(s Shape) (near *shapedConn, far net.Conn) {
	a, far := net.Pipe()
	near = newShapedConn(pipeConn{a}, newShaper(&s))
	return near, far
}

// TestShapedLinkTakesItsTime: 1 MB at 1 MB/s with 100 ms of delay, less the burst
// that passes at once.
func TestShapedLinkTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, rate = 1_000_000, 1_000_000
		near, far := shapedPipe(Shape{Up: rate, Delay: 100 * time.Millisecond})
		go near.pump()
		sent := bytes.Repeat([]byte("atoll"), size/5)
		began := time.Now()
		go func() {
			for at := 0; at < size; at += 10_000 {
				if _, err := near.Write(sent[at : at+10_000]); err != nil {
					t.Error(err)
				}
			}
			if err := near.Close(); err != nil { // what has left still arrives
				t.Error(err)
			}
		}()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes of %d, %v", len(got), size, err)
		}
		want := time.Duration(float64(size-limitBurst)/rate*float64(time.Second)) + 100*time.Millisecond
		if took := time.Since(began); took < want || took > want+time.Millisecond {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

// TestShapedLinkIsSharedByItsConnections: two connections of one node have half
// of its rate each.
func TestShapedLinkIsSharedByItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := newShaper(&Shape{Up: 1_000_000})
		began := time.Now()
		ended := make(chan int, 2)
		for range 2 {
			a, far := net.Pipe()
			near := newShapedConn(pipeConn{a}, link)
			go near.pump()
			go func() {
				for range 50 {
					if _, err := near.Write(make([]byte, 10_000)); err != nil {
						t.Error(err)
					}
				}
				near.Close()
			}()
			go func() {
				b, _ := io.ReadAll(far)
				ended <- len(b)
			}()
		}
		if n := <-ended + <-ended; n != 1_000_000 {
			t.Errorf("%d bytes arrived", n)
		}
		if took := time.Since(began); took < 900*time.Millisecond || took > time.Second {
			t.Errorf("took %v, want 1 s less the burst", took)
		}
	})
}

// TestShapedReaderWaits: the link's rate holds for what comes as well.
func TestShapedReaderWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := shapedPipe(Shape{Down: 100_000})
		go near.pump()
		go func() {
			far.Write(make([]byte, 200_000+limitBurst))
			far.Close()
		}()
		began := time.Now()
		if _, err := io.ReadAll(near); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("200 kB at 100 kB/s took %v", took)
		}
		near.Close()
	})
}

// TestShapedConnEnds: Close ends a writer that waits for its turn, a reader that waits
// for bytes, and what a dead peer leaves behind.
func TestShapedConnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := shapedPipe(Shape{Up: 10})
		go near.pump()
		ended := make(chan error, 2)
		go func() { _, err := near.Write(make([]byte, limitBurst+1000)); ended <- err }()
		go func() { _, err := near.Read(make([]byte, 1)); ended <- err }()
		synctest.Wait()
		near.Close()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		}
		far.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		near, far := shapedPipe(Shape{Delay: time.Second})
		go near.pump()
		far.Close()
		if _, err := near.Write([]byte("x")); err != nil {
			t.Errorf("the first write cannot know: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := near.Write([]byte("x")); err == nil {
			t.Error("a write to a peer that is gone gave no error")
		}
		near.Close()
	})
}

func TestShapeNeedsTheLocalProfile(t *testing.T) {
	c := newPerson(1).config()
	c.Shape = &Shape{Delay: time.Millisecond}
	for profile, ok := range map[string]bool{Local: true, LAN: false, WAN: false} {
		c.Profile = profile
		if _, err := c.validate(); (err == nil) != ok {
			t.Errorf("%s: %v", profile, err)
		}
	}
	c.Profile, c.Shape.Delay = Local, -1
	if _, err := c.validate(); err == nil {
		t.Error("a negative delay was taken")
	}
}

// TestShapedHostsTalk: a handshake and a request pass a shaped link.
func TestShapedHostsTalk(t *testing.T) {
	configs := []Config{newPerson(1).config(), newPerson(2).config()}
	for i := range configs {
		configs[i].Shape = &Shape{Up: 1 << 30, Down: 1 << 30, Delay: time.Millisecond}
	}
	a, b := start(t, configs[0]), start(t, configs[1])
	b.Handle(echo)
	join(t, a, b)
	got, err := a.Call(t.Context(), b.ID(), []byte("hello"), 1<<10)
	if err != nil || string(got[1:]) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}
