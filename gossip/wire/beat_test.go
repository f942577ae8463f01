package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestBeatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawBeat(t)
		m, err := Open(testRun, EncodeBeat(testKey(1), testRun, want))
		if err != nil {
			t.Fatal(err)
		}
		want.Author = PeerIDOf(testKey(1))
		if !reflect.DeepEqual(*m.Beat, want) {
			t.Fatalf("%+v came back as %+v", want, *m.Beat)
		}
	})
}

// largestBeat has every number at its largest.
func largestBeat(fragments int) Beat {
	b := Beat{
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

// MaxFragments follows from MaxMessage: no valid beat is too long to publish.
func TestLargestBeatFitsAMessage(t *testing.T) {
	b := EncodeBeat(testKey(1), testRun, largestBeat(MaxFragments))
	t.Logf("largest beat: %d bytes of %d", len(b), MaxMessage)
	const room = 128 // for what later versions add
	if len(b) > MaxMessage-room {
		t.Fatalf("%d bytes, a message has at most %d", len(b), MaxMessage)
	}
	_, err := Open(testRun, b)
	ok(t, err)
}

func TestBeatIsCompact(t *testing.T) {
	b := testBeat()
	b.Unpublished, b.Closed = make([]uint64, 24), make([]uint32, 24)
	for i := range b.Closed {
		b.Unpublished[i], b.Closed[i] = 12288, 200
	}
	if n := len(EncodeBeat(testKey(1), testRun, b)); n > 400 {
		t.Errorf("an ordinary beat of 24 fragments has %d bytes, want at most 400", n)
	}
}

// A later version may say more. What it says is signed too.
func TestUnknownKeysOfABeatAreSkipped(t *testing.T) {
	type later struct {
		Beat
		Mood []string `cbor:"99,keyasint"`
	}
	key := testKey(1)
	b := seal([]byte{Version, byte(KindBeat)}, key, domainBeat, testRun, later{testBeat(), []string{"hopeful"}})
	m, err := Open(testRun, b)
	ok(t, err)
	if !reflect.DeepEqual(*m.Beat, testBeat()) {
		t.Errorf("read %+v", *m.Beat)
	}
	mood := bytes.Index(b, []byte("hopeful"))
	_, err = Open(testRun, flipped(b, 8*mood))
	wantErr(t, err, ErrSignature)
}
