package baseline

import (
	"context"
	"encoding/binary"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStatesAreReadAsTheyWereWritten(t *testing.T) {
	a, b := []float32{1, 2, 3}, []float32{-4}
	inner, vectors, err := decodeState(encodeState([]byte("inner"), a, b), 3, 1)
	if err != nil || string(inner) != "inner" || !slices.Equal(vectors[0], a) || !slices.Equal(vectors[1], b) {
		t.Errorf("%q %v, %v", inner, vectors, err)
	}
	whole := encodeState([]byte("inner"), a)
	for n := range whole {
		if _, _, err := decodeState(whole[:n], 3); err == nil {
			t.Errorf("a state cut after %d bytes was taken", n)
		}
	}
	if _, _, err := decodeState(whole, 2); err == nil {
		t.Error("a state of another model was taken")
	}
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		if _, _, err := decodeState(encodeState(nil, []float32{float32(x)}), 1); err == nil {
			t.Errorf("a state with %v was taken", x)
		}
	}
	huge := encodeState(nil, a)
	binary.LittleEndian.PutUint64(huge, math.MaxUint64-11)
	if _, _, err := decodeState(huge, 3); err == nil {
		t.Error("a length that overflows was taken")
	}
}

// TestSnapshotIsBounded: a source that announces too much is refused before anything is
// allocated for it, and one that says nothing is given up.
func TestSnapshotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			sent []byte
			want string
		}{
			{"too much", binary.LittleEndian.AppendUint64(nil, 101), "announces 101 bytes: at most 100"},
			{"silence", nil, "timeout"},
			{"silence within", append(binary.LittleEndian.AppendUint64(nil, 100), 1, 2, 3), "timeout"},
		} {
			near, far := net.Pipe()
			go far.Write(c.sent)
			if _, err := readSnapshot(pipeStream{near}, 100); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			near.Close()
			far.Close()
		}
	})
}

// TestSnapshotsAreOfOneView: who asks early waits, who asks for another view gets nothing.
func TestSnapshotsAreOfOneView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g snapshots
		ask := func(view uint64) ([]byte, error) {
			near, far := net.Pipe()
			defer near.Close()
			go g.serve(idOf(1), pipeStream{far})
			if _, err := near.Write(binary.LittleEndian.AppendUint64(nil, view)); err != nil {
				return nil, err
			}
			return readSnapshot(pipeStream{near}, 1<<22)
		}
		state := []byte(strings.Repeat("state", 1<<19)) // some parts of snapshotPart
		go func() {
			time.Sleep(time.Second)
			g.offer(3, state)
		}()
		if got, err := ask(3); err != nil || string(got) != string(state) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if got, err := ask(2); err == nil {
			t.Errorf("%d bytes of a view that is over", len(got))
		}
		g.withdraw(2)
		if _, err := ask(3); err != nil {
			t.Errorf("the state of view 3 went with that of another: %v", err)
		}
		g.withdraw(3)
		if got, err := ask(3); err == nil {
			t.Errorf("%d bytes after it was withdrawn", len(got))
		}
		began := time.Now()
		time.AfterFunc(time.Second, g.close)
		if _, err := ask(4); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("after the end: %v, %v later", err, time.Since(began))
		}
		if _, err := ask(4); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("long after the end: %v, %v later", err, time.Since(began))
		}
	})
}

// TestArrivals keeps one stream for each member, the one of the newest view.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a arrivals
		open := func(from byte, view uint64) net.Conn {
			near, far := net.Pipe()
			go a.serve(idOf(from), pipeStream{far})
			writeHello(near, view)
			synctest.Wait()
			return near
		}
		reset := func(c net.Conn) bool {
			c.SetReadDeadline(time.Now().Add(time.Second))
			_, err := c.Read(make([]byte, 1))
			ne, ok := err.(net.Error)
			return !(ok && ne.Timeout())
		}
		one, two, old := open(1, 1), open(1, 2), open(1, 1)
		if !reset(one) || reset(two) || !reset(old) {
			t.Error("of three streams, not just the one of the newest view stayed")
		}
		bad, far := net.Pipe()
		go a.serve(idOf(2), pipeStream{far})
		bad.Write([]byte(strings.Repeat("x", helloBytes)))
		if !reset(bad) {
			t.Error("a stream without magic stayed")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := a.await(ctx, idOf(1), 1); err == nil {
			t.Error("a stream of another view was taken")
		}
		if s, err := a.await(context.Background(), idOf(1), 2); err != nil || s == nil {
			t.Errorf("%v", err)
		}
		three := open(3, 1)
		a.close()
		if !reset(three) {
			t.Error("what nobody took stayed open")
		}
		if late := open(3, 2); !reset(late) {
			t.Error("a stream was taken after the end")
		}
		two.Close()
	})
}
