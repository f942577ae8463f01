package shards

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonBatches prints the SHA-256 of each of many batches that the Python package draws.
const pythonBatches = `
import array, hashlib, json, sys
from atoll.corpus import Corpus, Draw
c = Corpus(sys.argv[1])
for line in sys.stdin:
    seed, author, step, rows, context, shards, steps = json.loads(line)
    rows = c.batch(Draw(c, seed, bytes.fromhex(author), context, shards, steps), step, rows)
    print(hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest())
`

// TestPythonDrawsTheSameBatches compares 10,000 batches of several authors, windows and contexts,
// of tokens of 2 and of 4 bytes, and as many of mixtures.
func TestPythonDrawsTheSameBatches(t *testing.T) {
	t.Run("one corpus", func(t *testing.T) { t.Parallel(); samePythonBatches(t) })
	t.Run("mixture", func(t *testing.T) { t.Parallel(); samePythonBatches(t, 70, 29, 1) })
}

// samePythonBatches compares batches of a corpus whose shards components of some weights share.
func samePythonBatches(t *testing.T, weights ...uint64) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	for width, size := range map[int]int{2: 1 << 16, 4: 1 << 20} {
		m := &Manifest{Format: Format, Name: "made up", Width: width, Tokenizer: Tokenizer{Name: "test", Size: size, End: -1, Digest: Digest{1}}}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, shardFolder), 0o755); err != nil {
			t.Fatal(err)
		}
		for n, length := range []int{700, 300, 20, 901, 555, 64, 333, 1000, 480, 777} {
			tokens := make([]int32, length)
			for i := range tokens {
				tokens[i] = int32((n*70_001 + i*131) % size)
			}
			b := AppendTokens(nil, width, tokens)
			s := Shard{Digest: Sum(b), Tokens: int64(length), Bytes: int64(length)}
			if err := WriteFile(ShardFile(dir, s.Digest), b); err != nil {
				t.Fatal(err)
			}
			if n < max(1, len(weights)) {
				m.HeldOut = append(m.HeldOut, s)
			} else {
				m.Shards = append(m.Shards, s)
			}
		}
		if len(weights) > 0 {
			m.mix(weights...)
		}
		if err := WriteFile(filepath.Join(dir, ManifestFile), m.Encode()); err != nil {
			t.Fatal(err)
		}
		d, err := OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		samePython(t, d)
	}
}

func samePython(t *testing.T, d *Dir) {
	t.Helper()
	var asked bytes.Buffer
	var want [][]byte
	for i := range 5000 {
		w := Window{Shards: 1 + i%11, Steps: int64(1 + i%7)}
		s, err := NewSource(d.Manifest, w, d.Fetch)
		if err != nil {
			t.Fatal(err)
		}
		who, seed, step, rows, length := [32]byte{byte(i % 5)}, uint64(i)<<(i%50), int64(i)*int64(i), 1+i%4, []int{1, 8, 63, 64, 300}[i%5]
		dst := make([]int32, rows*(length+1))
		if err := s.Batch(t.Context(), seed, who, step, rows, length, dst); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&asked, "[%d,%q,%d,%d,%d,%d,%d]\n", seed, hex.EncodeToString(who[:]), step, rows, length, w.Shards, w.Steps)
		var list [][]int32
		for r := range rows {
			list = append(list, dst[r*(length+1):(r+1)*(length+1)])
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, b)
	}
	c := exec.CommandContext(t.Context(), "python3", "-c", pythonBatches, d.Path)
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+filepath.Join("..", "..", "external", "python"))
	c.Stdin, c.Stderr = &asked, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := bytes.Fields(out)
	if len(got) != len(want) {
		t.Fatalf("%d batches, want %d", len(got), len(want))
	}
	for i := range got {
		if sum := sha256Hex(want[i]); string(got[i]) != sum {
			t.Fatalf("batch %d of tokens of %d bytes is another one", i, d.Manifest.Width)
		}
	}
}

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
