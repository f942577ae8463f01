package node

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/mirror"
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
	client.CheckRedirect = mirror.Client().CheckRedirect
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
