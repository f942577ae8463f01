package node

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/allowance"
	"atoll/node/status"
	"atoll/optimizer/trainer/corpus/shards"
)

// Shards that no peer has come from mirrors, past those that are dead, lie or are too long, and
// then go to peers. Nothing wrong is kept.
func TestMirrors(t *testing.T) {
	t.Parallel()
	var folder string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, _ := strings.CutPrefix(r.URL.Path, "/")
		kind, path, _ := strings.Cut(rest, "/")
		b, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path)))
		switch {
		case err != nil:
			http.NotFound(w, r)
		case kind == "lies":
			b[3] ^= 1
			_, _ = w.Write(b)
		case kind == "long":
			_, _ = w.Write(append(b, 0))
		case kind == "short":
			_, _ = w.Write(b[1:])
		case kind == "away":
			http.Redirect(w, r, "http://example.org/", http.StatusFound)
		case kind == "gone":
			http.Error(w, "gone", http.StatusGone)
		default:
			_, _ = w.Write(b)
		}
	}))
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = fewRedirects
	kinds := []string{"lies", "long", "short", "away", "gone"}
	var urls []string
	for _, kind := range kinds {
		urls = append(urls, server.URL+"/"+kind)
	}
	c := manyShards(t, 3, 5_000, append(urls, server.URL+"/good")...)
	folder = c.Path
	bare := t.TempDir() // the manifest alone
	b, err := os.ReadFile(filepath.Join(c.Path, shards.ManifestFile))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(bare, shards.ManifestFile), b, 0o600))
	dir := t.TempDir()
	m := launch(t, Config{Dir: dir, Genesis: aboutCorpus(1<<40, c.Manifest).Encode(), Data: bare, Pace: slowPace, web: client})
	second := launch(t, Config{Link: m.link(), Pace: slowPace})
	s := m.until("a step", func(s status.Snapshot) bool { return trains(s) && s.Data.Missing == 0 })
	for _, want := range []string{"/lies does not give", "/long does not give", "/short does not give", "/away does not give", "answers 410 Gone"} {
		if !hasEvent("mirror", want)(s) {
			t.Errorf("no event says %q: %+v", want, s.Events)
		}
	}
	for _, file := range fetched(t, dir) {
		if b, err := os.ReadFile(file); err != nil || shards.Sum(b).String()+".bin" != filepath.Base(file) {
			t.Errorf("%s is not what its name says: %v", file, err)
		}
	}
	second.until("a step", trains)
	second.leave()
	m.leave()
}

// A mirror is asked when no peer has a shard, or when nothing of it comes.
func TestWhenMirrorsAreAsked(t *testing.T) {
	var m mirrors
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
		{0, 0, 0, false}, {mirrorAlone - 1, 0, 0, false}, {1, 0, 0, true}, {0, 0, 1, false},
		{mirrorStill, 0, 1, true}, {0, 10, 1, false}, {mirrorStill - 1, 10, 1, false}, {0, 20, 0, false}, {mirrorAlone, 20, 0, true},
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
		n := &node{cfg: Config{Limits: allowance.Limits{Down: mirrorBlock}}}
		b := make([]byte, 3*mirrorBlock)
		began := time.Now()
		must(t, n.readPaced(t.Context(), bytes.NewReader(make([]byte, len(b))), b))
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("three blocks at one a second took %v", took)
		}
	})
}
