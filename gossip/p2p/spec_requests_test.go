package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"atoll/gossip/p2p/bulk"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// asks opens a stream of a request from a to b and sends a frame.
func asks(t *testing.T, a, b *Host, frame []byte) network.Stream {
	t.Helper()
	s := open(t, a, b, rpcProtocol)
	if _, err := s.Write(frame); err != nil {
		t.Fatal(err)
	}
	return s
}

// one is the frame of a request of one byte.
var one = []byte{0, 0, 0, 1, 7}

func specCall(t *testing.T, s *spectest.Spec) {
	for name, n := range map[string]int64{"part": bulk.Segment, "window": bulk.MinWindow, "tick": bulk.StampTick.Microseconds(), "requests of one": servePeer, "pass on": passOnAfter.Milliseconds()} {
		if got := s.Number(t, "connections", name); got != n {
			t.Errorf("%s is %d, the text says %d", name, n, got)
		}
	}
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(echo)
		got := make([]byte, 7)
		if _, err := io.ReadFull(asks(t, a, b, []byte{0, 0, 0, 2, 1, 2}), got); err != nil || !bytes.Equal(got, []byte{0, 0, 0, 3, 1, 1, 2}) {
			t.Errorf("answered %x, %v", got, err)
		}
	})
}

func specServerEnds(t *testing.T, _ *spectest.Spec) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(echo)
		if got, err := io.ReadAll(asks(t, a, b, one)); err != nil || len(got) != 6 { // though the asker did not end its side
			t.Errorf("answered %x, %v", got, err)
		}
	})
	if _, _, err := takeBulk(t, 1, 0); err != nil { // it looks for the end of a long answer
		t.Error(err)
	}
}

// bulkSize is ten parts less the length of the frame.
const bulkSize = 10*32768 - 4

func answerWith(answer []byte) Handler {
	return func(context.Context, wire.PeerID, []byte) []byte { return answer }
}

// takeBulk asks for an answer of ten parts and reads it. It sends back so many stamps
// after each part, and ahead before the first. It returns what came, and how long
// nothing had come before the end.
func takeBulk(t *testing.T, back, ahead int) (got int, idle time.Duration, err error) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(answerWith(make([]byte, bulkSize)))
		s := asks(t, a, b, one)
		_, err = s.Write(make([]byte, 2*ahead))
		last := time.Now()
		for part := make([]byte, 32768); err == nil && got < bulkSize+4; {
			var n int
			n, err = s.Read(part[:min(len(part), 32768-got%32768)])
			if got += n; n > 0 {
				last = time.Now()
			}
			if err == nil && got%32768 == 0 && back > 0 {
				_, err = s.Write(bytes.Repeat([]byte{byte(got)}, 2*back))
			}
		}
		if idle = time.Since(last); got == bulkSize+4 && (err == nil || err == io.EOF) {
			began := time.Now()
			if n, end := s.Read(make([]byte, 1)); n != 0 || end != io.EOF || time.Since(began) > time.Second {
				t.Errorf("the server does not end its side: %v", end)
			}
			err = nil
		}
		s.Close()
	})
	return got, idle, err
}

func specAcknowledge(t *testing.T, s *spectest.Spec) {
	if got, _, err := takeBulk(t, 1, 0); err != nil || got != bulkSize+4 {
		t.Errorf("with one stamp for each part %d bytes, %v", got, err)
	}
}

func specStamps(t *testing.T, s *spectest.Spec) {
	part := int(s.Number(t, "connections", "part"))
	back := stamps(t, 2*part+1, part-1, 1, part, 1) // a part but for a byte, the byte, a part, the rest
	for i, want := range []int{0, 2, 2, 2} {
		if len(back[i]) != want {
			t.Fatalf("%x after write %d, want %d bytes", back[i], i, want)
		}
	}
	ticks := binary.BigEndian.Uint16(back[2]) - binary.BigEndian.Uint16(back[1])
	apart := time.Duration(int64(ticks)*s.Number(t, "connections", "tick")) * time.Microsecond
	if apart < 990*time.Millisecond || apart > 1010*time.Millisecond {
		t.Errorf("stamps of two parts are %v apart, want a second", apart)
	}
}

// stamps serves an answer whose frame has so many bytes in these parts, a second
// apart, and returns what the asker sends back after each.
func stamps(t *testing.T, size int, parts ...int) (back [][]byte) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		done := make(chan struct{})
		b.host.SetStreamHandler(rpcProtocol, func(st network.Stream) {
			defer close(done)
			_, _ = wire.ReadFrame(st, 64)
			frame := binary.BigEndian.AppendUint32(nil, uint32(size-4))
			frame = append(frame, make([]byte, size-4)...)
			for _, n := range parts {
				_, _ = st.Write(frame[:n])
				frame = frame[n:]
				time.Sleep(time.Second)
				got := make([]byte, 9)
				_ = st.SetReadDeadline(time.Now().Add(time.Millisecond))
				n, _ := st.Read(got)
				back = append(back, got[:n])
			}
			st.Reset()
		})
		_, _ = a.Call(t.Context(), b.ID(), []byte{1}, 1<<20)
		<-done
	})
	return back
}

func specWindow(t *testing.T, s *spectest.Spec) {
	if got, _, err := takeBulk(t, 0, 0); err == nil || int64(got) != s.Number(t, "connections", "window") {
		t.Errorf("without a byte back %d bytes come, %v", got, err)
	}
	inPair(t, rate, func(t *testing.T, a, b *Host) { // less than a part is sent as it is
		b.Handle(answerWith(make([]byte, bulk.Segment-1)))
		if got, err := io.ReadAll(asks(t, a, b, one)); err != nil || len(got) != bulk.Segment+3 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

func specTooManyAcks(t *testing.T, _ *spectest.Spec) {
	if got, idle, err := takeBulk(t, 1, 32); !errors.Is(err, network.ErrReset) || idle > time.Second {
		t.Errorf("32 bytes too many: %d bytes come, %v after %v", got, err, idle)
	}
}

func specStall(t *testing.T, s *spectest.Spec) {
	_, idle, err := takeBulk(t, 0, 0)
	if limit := ms(t, s, "stall"); !errors.Is(err, network.ErrReset) || idle < limit-time.Second || idle > limit+time.Second {
		t.Errorf("%v after %v", err, idle)
	}
}

func specRequestLimits(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "limits", "MaxRequest"))
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		b.Handle(answerWith([]byte{1}))
		frame := func(n int) []byte {
			return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
		}
		if got, err := io.ReadAll(asks(t, a, b, frame(most))); err != nil || len(got) != 5 {
			t.Errorf("the longest: %x, %v", got, err)
		}
		if got, err := io.ReadAll(asks(t, a, b, frame(most + 1)[:100])); err == nil {
			t.Errorf("a longer one: %x", got)
		}
		began := time.Now()
		if got, err := io.ReadAll(asks(t, a, b, frame(10)[:9])); err == nil {
			t.Errorf("half a request: %x", got)
		}
		if took := time.Since(began); took < ms(t, s, "request") || took > ms(t, s, "request")+time.Second {
			t.Errorf("half a request is reset after %v", took)
		}
	})
}

func specSlowHandler(t *testing.T, s *spectest.Spec) {
	limit := ms(t, s, "answer")
	for _, c := range []struct {
		takes time.Duration
		ok    bool
	}{{limit - time.Second, true}, {time.Hour, false}} {
		inPair(t, rate, func(t *testing.T, a, b *Host) {
			b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte {
				select {
				case <-time.After(c.takes):
				case <-ctx.Done():
				}
				return []byte{1}
			})
			began := time.Now()
			if _, err := io.ReadAll(asks(t, a, b, one)); (err == nil) != c.ok {
				t.Errorf("an answer that takes %v: %v", c.takes, err)
			}
			if took := time.Since(began); took > limit+time.Second {
				t.Errorf("reset after %v", took)
			}
		})
	}
}

func specBusy(t *testing.T, s *spectest.Spec) {
	of, all := int(s.Number(t, "connections", "requests of one")), serveTotal
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		release := make(chan struct{})
		b.Handle(func(context.Context, wire.PeerID, []byte) []byte { <-release; return []byte{1} })
		for range of {
			asks(t, a, b, one)
			time.Sleep(10 * time.Millisecond)
		}
		if got, err := io.ReadAll(asks(t, a, b, one)); err != nil || !bytes.Equal(got, []byte{0, 0, 0, 1, byte(wire.Busy)}) {
			t.Errorf("one more of a peer: %x, %v", got, err)
		}
		close(release)
		time.Sleep(time.Second)
		b.serves(all) // of other peers
		if got, err := io.ReadAll(asks(t, a, b, one)); err != nil || !bytes.Equal(got, []byte{0, 0, 0, 1, byte(wire.Busy)}) {
			t.Errorf("one more of all: %x, %v", got, err)
		}
		b.serves(0)
		if got, err := io.ReadAll(asks(t, a, b, one)); err != nil || !bytes.Equal(got, []byte{0, 0, 0, 1, 1}) {
			t.Errorf("afterwards: %x, %v", got, err)
		}
	})
}

// serves has a host take itself for one that serves n requests.
func (h *Host) serves(n int) {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	h.peers.serving = n
}

func TestRequestAskerGone(t *testing.T) {
	for name, end := range map[string]func(s network.Stream){
		"ends":   func(s network.Stream) { s.Close() },
		"resets": func(s network.Stream) { s.Reset() },
	} {
		inPair(t, rate, func(t *testing.T, a, b *Host) {
			given := make(chan error, 1)
			b.Handle(func(ctx context.Context, _ wire.PeerID, _ []byte) []byte {
				<-ctx.Done()
				given <- context.Cause(ctx)
				return nil
			})
			s := asks(t, a, b, one)
			time.Sleep(time.Second)
			began := time.Now()
			end(s)
			if err := <-given; !errors.Is(err, errGone) || time.Since(began) > time.Second {
				t.Errorf("an asker that %s: %v after %v", name, err, time.Since(began))
			}
		})
	}
}
