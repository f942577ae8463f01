package baseline

import (
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFramesOnTheWire is what two versions must agree on.
func TestFramesOnTheWire(t *testing.T) {
	var b bytes.Buffer
	if err := writeHello(&b, 3); err != nil {
		t.Fatal(err)
	}
	f := roundFrame{7, Frame{1, 2, appendBF16(nil, []float32{1, -2})}}
	if err := f.write(&b); err != nil {
		t.Fatal(err)
	}
	const want = "61746f6c6c72696e6731" + "0300000000000000" + // hello
		"0700000000000000" + "01000000" + "0200" + "04000000" + "803f00c0"
	if got := hex.EncodeToString(b.Bytes()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if view, err := readHello(&b); view != 3 || err != nil {
		t.Errorf("view %d, %v", view, err)
	}
	got, err := readFrame(&b, func(bucket, hop int) (int, error) { return 4, nil })
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("%+v, %v", got, err)
	}
}

// endless is a peer that never stops to send zeros; it counts them.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.n += len(b)
	return len(b), nil
}

// TestBadFrames are refused by their head: no byte of a payload is read.
func TestBadFrames(t *testing.T) {
	plan := NewRing(0, 3, []int{6, 3})
	frame := func(f roundFrame) []byte {
		var b bytes.Buffer
		f.write(&b)
		return b.Bytes()
	}
	four := make([]byte, 4)
	for name, b := range map[string][]byte{
		"a bucket that is not": frame(roundFrame{1, Frame{2, 0, four}}),
		"a hop that is not":    frame(roundFrame{1, Frame{0, 4, four}}),
		"too short":            frame(roundFrame{1, Frame{0, 0, four[:2]}}),
		"too long":             frame(roundFrame{1, Frame{0, 0, make([]byte, 4096)}}),
		"of another bucket":    frame(roundFrame{1, Frame{1, 0, four}}),
	} {
		after := &endless{}
		if f, err := readFrame(io.MultiReader(bytes.NewReader(b[:headBytes]), after), plan.PayloadSize); err == nil || after.n > 0 {
			t.Errorf("%s: %+v, %v, %d bytes read after the head", name, f, err, after.n)
		}
	}
	for n := range headBytes + 4 {
		b := frame(roundFrame{1, Frame{0, 0, four}})[:n]
		if _, err := readFrame(bytes.NewReader(b), plan.PayloadSize); err == nil {
			t.Errorf("a frame cut after %d bytes was read", n)
		}
	}
	for _, b := range []string{"", "atollring1", "atollring2" + strings.Repeat("\x00", 8), strings.Repeat("x", 50)} {
		if _, err := readHello(strings.NewReader(b)); err == nil {
			t.Errorf("%q was taken as the begin of a stream", b)
		}
	}
}

// FuzzFrames feeds a ring whatever comes: it may refuse, and it may end with other sums,
// but nothing panics, and it never holds more than its vector.
func FuzzFrames(f *testing.F) {
	var b bytes.Buffer
	for hop := range 4 {
		roundFrame{1, Frame{0, hop, make([]byte, 4)}}.write(&b)
	}
	f.Add(b.Bytes(), true)
	f.Add(b.Bytes(), false)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, b []byte, early bool) {
		ring := NewRing(1, 3, []int{6, 0, 4})
		if !early {
			ring.Contribute(0, make([]float32, 6))
		}
		r := bytes.NewReader(b)
		for {
			frame, err := readFrame(r, ring.PayloadSize)
			if err != nil {
				return
			}
			if out, err := ring.Receive(frame.Frame); err != nil && out != nil {
				t.Fatalf("refused and passed on: %v", err)
			}
			for _, k := range ring.buckets {
				if len(k.early) > 2 {
					t.Fatalf("%d frames wait for a contribution", len(k.early))
				}
			}
		}
	})
}

// TestMessages are read as they were written, and refused where a number or a length
// cannot be meant.
func TestMessages(t *testing.T) {
	r := Report{Op: opReady, Addr: "x", Label: Label{1, 2, 3}, In: 1, Connected: ids(2)}
	if got, err := decode[Report](encode(r), maxRequest); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %v", got, err)
	}
	v := View{Number: 2, From: Label{1, 2, 3}, Members: ids(3), Source: ids(3)[1], Lacking: ids(1)}
	o := Order{PeerList: []Place{{ids(1)[0], "x"}}, View: &v, Stop: true, End: &Label{1, 2, 3}}
	if got, err := decode[Order](encode(o), maxAnswer); err != nil || !reflect.DeepEqual(got, o) {
		t.Errorf("%+v, %v", got, err)
	}
	most := Order{View: &View{Number: 1, Members: ids(MaxMembers), Source: ids(1)[0], Lacking: ids(MaxMembers)[1:]}}
	for _, id := range ids(MaxMembers) {
		most.PeerList = append(most.PeerList, Place{id, strings.Repeat("x", maxAddr)})
	}
	if n := len(encode(most)); n > maxAnswer {
		t.Errorf("the longest order has %d bytes, more than the limit of %d", n, maxAnswer)
	}
	if n := len(encode(Report{Op: opReady, Addr: strings.Repeat("x", maxAddr), Connected: ids(MaxMembers)})); n > maxRequest {
		t.Errorf("the longest report has %d bytes, more than the limit of %d", n, maxRequest)
	}
	for _, bad := range []Report{
		{Op: "other"}, {Op: opReady, Addr: strings.Repeat("x", maxAddr+1)}, {Op: opReady, In: 1 << 63},
		{Op: opReady, Label: Label{Round: 1 << 63}}, {Op: opReady, Label: Label{Tokens: 1 << 63}}, {Op: opReady, Connected: ids(MaxMembers + 1)},
	} {
		if _, err := decode[Report](encode(bad), maxRequest); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	one, two := ids(1), ids(2)
	for _, bad := range []View{
		{Number: 1}, {Members: one, Source: one[0]}, {Number: 1, From: Label{View: 1}, Members: one, Source: one[0]},
		{Number: 1, Members: append(one, one...), Source: one[0]}, {Number: 1, Members: one, Source: two[1]},
		{Number: 1, Members: two, Source: two[0], Lacking: one}, {Number: 1, Members: one, Source: one[0], Lacking: two[1:]},
		{Number: 1, Members: ids(MaxMembers + 1), Source: one[0]},
	} {
		if _, err := decode[Order](encode(Order{View: &bad}), maxAnswer); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	for _, bad := range []string{"", "{", `{"op":"ready","more":1}`, `{"op":"ready","connected":["00"]}`} {
		if _, err := decode[Report]([]byte(bad), maxRequest); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if _, err := decode[Report](make([]byte, 100), 99); err == nil {
		t.Error("a message beyond the limit was taken")
	}
}

// FuzzMessages reads what any peer may send and gives reports to a registry.
func FuzzMessages(f *testing.F) {
	f.Add(encode(Report{Op: opReady, Connected: ids(2)}))
	f.Add(encode(Report{Op: opWatch, In: 1}))
	f.Add(encode(Order{View: &View{Number: 1, Members: ids(2), Source: ids(1)[0]}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decode[Order](b, maxAnswer); err == nil && o.View != nil && o.View.place(o.View.Source) < 0 {
			t.Fatalf("a view without its source: %+v", o.View)
		}
		said, err := decode[Report](b, maxRequest)
		if err != nil {
			return
		}
		r := NewRegistry(someRules(2, 1))
		for i, id := range ids(3) {
			r.Report(epoch, id, said, uint64(i+1))
		}
		r.Gone(epoch, ids(1)[0])
		r.Tick(epoch.Add(r.cfg.Start))
		checkAnswers(t.Fatalf, r.Take(), 3)
	})
}

// TestBF16OnTheWire: what is written is read as the nearest value, within half
// a unit of the last of its 8 bits, or of the smallest value.
func TestBF16OnTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-1e30, 1e30).Draw(t, "x")
		var got [1]float32
		readBF16(got[:], appendBF16(nil, []float32{x}))
		half := max(math.Abs(float64(x))/256, math.Ldexp(1, -134))
		if math.Abs(float64(got[0])-float64(x)) > half {
			t.Fatalf("%v became %v", x, got[0])
		}
	})
}
