package corpus

import (
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	c := New("digits", []byte("0123456789abcdefghij"))
	if got := string(c.Train()); got != "0123456789abcdefgh" {
		t.Errorf("train is %q", got)
	}
	if got := string(c.HeldOut()); got != "ij" {
		t.Errorf("held out is %q", got)
	}
}

func TestHashCoversBothParts(t *testing.T) {
	// sha256sum of the ten bytes "0123456789".
	const want = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
	if got := New("digits", []byte("0123456789")).SHA256(); got != want {
		t.Errorf("hash is %s, want %s", got, want)
	}
}

func TestFits(t *testing.T) {
	for _, tc := range []struct {
		size, context int
		message       string
	}{
		{1290, 128, ""},
		{1000, 128, "900 to train on and 100 held out, and a context of 128 tokens needs 129 of each: pass at least 1290 bytes"},
		{0, 1, "0 bytes leave 0 to train on"},
		{100, 0, "context is 0"},
	} {
		err := New("text", make([]byte, tc.size)).Fits(tc.context)
		if tc.message == "" && err == nil {
			continue
		}
		if err == nil || tc.message == "" || !strings.Contains(err.Error(), tc.message) {
			t.Errorf("%d bytes, context %d: error %v, want %q", tc.size, tc.context, err, tc.message)
		}
	}
}

// A text that nobody trained on is held out as a whole, and has the same name and hash.
func TestUnseen(t *testing.T) {
	c := New("book", []byte("all of it"))
	u := c.Unseen()
	if len(u.Train()) != 0 || string(u.HeldOut()) != "all of it" || u.SHA256() != c.SHA256() || len(c.Train()) == 0 {
		t.Errorf("trains on %q, holds out %q", u.Train(), u.HeldOut())
	}
}
