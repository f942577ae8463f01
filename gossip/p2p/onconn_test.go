package p2p

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"atoll/testnet/shaping"
)

// One stream of the muxer fills a link: its window does not stop it.
func TestStreamFillsALink(t *testing.T) {
	for _, rate := range []int64{2_500_000, 12_500_000} {
		synctest.Test(t, func(t *testing.T) {
			x, y := net.Pipe()
			session := func(c net.Conn, server bool) network.MuxedConn {
				on, run := shaping.New(&shaping.Link{Up: rate, Down: rate, Delay: 40 * time.Millisecond}, "").Conn(c)
				go run()
				s, err := muxer().NewConn(on, server, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			near, far := session(x, false), session(y, true)
			size := 20 * rate
			go func() {
				s, err := near.OpenStream(t.Context())
				if err == nil {
					_, err = s.Write(make([]byte, size))
				}
				if err != nil {
					t.Error(err)
				}
				s.Close()
			}()
			s, err := far.AcceptStream()
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			n, err := io.Copy(io.Discard, s)
			if took := time.Since(began); n != size || err != nil || took > 22*time.Second {
				t.Errorf("%d of %d bytes at %d bytes/s took %v, %v", n, size, rate, took, err)
			}
			near.Close()
			far.Close()
			x.Close() // unlike a socket it has no buffer for the last words of both
		})
	}
}

// A handshake and requests pass what is put onto connections: a link, also one that loses much and
// one that becomes another. A host without it is told of.
func TestHostsTalkThroughOnConn(t *testing.T) {
	configs := []Config{newPerson(1).config(), newPerson(2).config(), newPerson(3).config()}
	var links [2]*shaping.Shaper
	for i := range links {
		links[i] = shaping.New(&shaping.Link{Up: 1 << 30, Down: 1 << 30, Delay: time.Millisecond, Loss: 0.05}, "")
		configs[i].OnConn = links[i].Conn
	}
	a, b, plain := start(t, configs[0]), start(t, configs[1]), start(t, configs[2])
	b.Handle(echo)
	join(t, a, b)
	links[0].Become(shaping.Link{Delay: 2 * time.Millisecond})
	request := bytes.Repeat([]byte("hello"), 1000)
	got, err := a.Call(t.Context(), b.ID(), request, len(request)+1)
	if err != nil || !bytes.Equal(got[1:], request) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := a.Dial(t.Context(), plain.Addrs()[0]); err == nil || !strings.Contains(err.Error(), "with atoll testnet-node and --shape") {
		t.Errorf("error %v", err)
	}
}
