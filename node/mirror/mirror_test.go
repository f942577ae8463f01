package mirror

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// A mirror is asked when no peer has a shard, or when nothing of it comes.
func TestWhenMirrorsAreAsked(t *testing.T) {
	var m Mirrors
	at := time.Unix(1000, 0)
	view := func(have int64, sources int) []gossip.BlobView {
		return []gossip.BlobView{{Blob: gossip.Blob{Digest: wire.Digest{1}, Size: 100}, Have: have, Sources: sources}}
	}
	for i, c := range []struct {
		after   time.Duration
		have    int64
		sources int
		want    bool
	}{
		{0, 0, 0, false}, {waitAlone - 1, 0, 0, false}, {1, 0, 0, true}, {0, 0, 1, false},
		{waitStill, 0, 1, true}, {0, 10, 1, false}, {waitStill - 1, 10, 1, false}, {0, 20, 0, false}, {waitAlone, 20, 0, true},
	} {
		at = at.Add(c.after)
		if got := len(m.notComing(view(c.have, c.sources), at)) == 1; got != c.want {
			t.Errorf("case %d: asked %v", i, got)
		}
	}
}

// Manifests of strangers do not have this machine ask its neighbours.
func TestMirrorsArePublic(t *testing.T) {
	for address, ok := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1:248:1893:25c8:1946]:443": true,
		"127.0.0.1:443": false, "10.1.2.3:443": false, "192.168.1.1:443": false, "169.254.169.254:80": false,
		"[::1]:443": false, "[fe80::1]:443": false, "[fd00::1]:443": false, "0.0.0.0:1": false, "[::ffff:127.0.0.1]:443": false, "nonsense": false,
	} {
		if err := publicOnly("tcp", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestDownloadsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := make([]byte, 3*blockSize)
		began := time.Now()
		if err := readPaced(t.Context(), bytes.NewReader(make([]byte, len(b))), b, blockSize); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three blocks at one a second took %v", took)
		}
	})
}

// One mirror is asked at a time. One that fails is left alone for longer each time, and that is news once.
func TestMirrorsThatFail(t *testing.T) {
	var m Mirrors
	at := time.Unix(1000, 0)
	list := func(wire.Digest) []string { return []string{"a", "b"} }
	wanted := []gossip.BlobView{{Blob: gossip.Blob{Digest: wire.Digest{1}, Size: 100}}}
	m.Choose(wanted, at, list)
	at = at.Add(waitAlone)
	for i, c := range []struct {
		after time.Duration
		asks  string
		err   error
		news  bool
	}{
		{0, "a", errors.New("gone"), true}, {0, "b", errors.New("gone"), true}, {0, "", nil, false},
		{leastPause, "a", errors.New("gone"), false}, {0, "b", context.Canceled, false}, {0, "b", nil, false},
		{leastPause, "b", errors.New("gone"), true}, {leastPause, "a", nil, false},
	} {
		at = at.Add(c.after)
		asks, _ := m.Choose(wanted, at, list)
		if asks != c.asks {
			t.Fatalf("case %d: asks %q", i, asks)
		}
		if asks == "" {
			continue
		}
		if more, _ := m.Choose(wanted, at, list); more != "" {
			t.Errorf("case %d: asks %q as well", i, more)
		}
		if news := m.Came(asks, at, c.err); news != c.news {
			t.Errorf("case %d: news is %v", i, news)
		}
	}
}
