package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestHeartbeatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawHeartbeat(t)
		m, err := Open(testRun, EncodeHeartbeat(testKey(1), testRun, want))
		if err != nil {
			t.Fatal(err)
		}
		want.Author = PeerIDOf(testKey(1))
		if !reflect.DeepEqual(*m.Heartbeat, want) {
			t.Fatalf("%+v came back as %+v", want, *m.Heartbeat)
		}
	})
}

// largestHeartbeat has every number at its largest.
func largestHeartbeat(fragments int) Heartbeat {
	b := Heartbeat{
		Incarnation: math.MaxInt64, Seq: math.MaxUint64, State: Leaving, Steps: math.MaxUint64, Tokens: math.MaxUint64,
		Lag: MaxLag, Capability: math.MaxUint64, TokensPerSecond: math.Pi, Folded: math.MaxUint64, Bits: 1.1,
		PeriodMs: MaxPeriodMs, Paused: true, Upload: math.Pi, Plan: MaxPlan, Full: true,
	}
	for range fragments {
		b.Unpublished = append(b.Unpublished, math.MaxUint64)
		b.Closed = append(b.Closed, math.MaxUint32)
	}
	return b
}

// MaxFragments follows from MaxMessage: no valid heartbeat is too long to publish.
func TestLargestHeartbeatFitsAMessage(t *testing.T) {
	b := EncodeHeartbeat(testKey(1), testRun, largestHeartbeat(MaxFragments))
	t.Logf("largest heartbeat: %d bytes of %d", len(b), MaxMessage)
	const room = 128 // for what later versions add
	if len(b) > MaxMessage-room {
		t.Fatalf("%d bytes, a message has at most %d", len(b), MaxMessage)
	}
	_, err := Open(testRun, b)
	ok(t, err)
}

func TestHeartbeatIsCompact(t *testing.T) {
	b := testHeartbeat()
	b.Unpublished, b.Closed = make([]uint64, 24), make([]uint32, 24)
	for i := range b.Closed {
		b.Unpublished[i], b.Closed[i] = 12288, 200
	}
	if n := len(EncodeHeartbeat(testKey(1), testRun, b)); n > 400 {
		t.Errorf("an ordinary heartbeat of 24 fragments has %d bytes, want at most 400", n)
	}
}

// A later version may say more. What it says is signed too.
func TestUnknownKeysOfAHeartbeatAreSkipped(t *testing.T) {
	type later struct {
		Heartbeat
		Mood []string `cbor:"99,keyasint"`
	}
	key := testKey(1)
	b := seal([]byte{Version, byte(KindHeartbeat)}, key, domainHeartbeat, testRun, later{testHeartbeat(), []string{"hopeful"}})
	m, err := Open(testRun, b)
	ok(t, err)
	if !reflect.DeepEqual(*m.Heartbeat, testHeartbeat()) {
		t.Errorf("read %+v", *m.Heartbeat)
	}
	mood := bytes.Index(b, []byte("hopeful"))
	_, err = Open(testRun, flipped(b, 8*mood))
	wantErr(t, err, ErrSignature)
}
