//go:build unix

package build

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"atoll/optimizer/trainer/corpus/documents"
	"atoll/tensor/token"
)

// BenchmarkBuild builds corpora of files with 8,192 tokens, as text and as JSON lines: reading, encoding, shuffling and
// writing. It tells MB of text for each second of one processor, which others on the machine do not change much:
//
//	ATOLL_TEXTS=a.txt:b.txt go test -run xxx -bench Build -cpu 1 ./optimizer/trainer/corpus/build
func BenchmarkBuild(b *testing.B) {
	for _, name := range filepath.SplitList(os.Getenv("ATOLL_TEXTS")) {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(name), func(b *testing.B) { benchmarkBuild(b, text) })
	}
}

func benchmarkBuild(b *testing.B, text []byte) {
	trainer, err := token.NewTrainer(8192)
	if err != nil {
		b.Fatal(err)
	}
	trainer.Add(text[:min(len(text), 4<<20)])
	file := trainer.Train().JSON()
	bpe, err := token.Parse(file)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	plain, lines := filepath.Join(dir, "a.txt"), filepath.Join(dir, "a.jsonl")
	if err := os.WriteFile(plain, text, 0o600); err != nil {
		b.Fatal(err)
	}
	var list []byte
	const length = 4 << 10
	for at := 0; at < len(text); at += length {
		line, err := json.Marshal(map[string]string{"text": string(text[at:min(at+length, len(text))]), "source": "a.txt"})
		if err != nil {
			b.Fatal(err)
		}
		list = append(append(list, line...), '\n')
	}
	if err := os.WriteFile(lines, list, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{plain, lines} {
		b.Run(filepath.Ext(path)[1:], func(b *testing.B) {
			size, began := 0, processorTime(b)
			for b.Loop() {
				size += len(text)
				files, err := documents.List([]string{path}, documents.Tally{})
				if err != nil {
					b.Fatal(err)
				}
				_, err = Run(b.Context(), Config{Out: filepath.Join(b.TempDir(), "corpus"), Inputs: files, Field: "text", Tokenizer: bpe, TokenizerName: "test",
					TokenizerFile: file, Name: "code", Seed: 1, HeldOut: 0.1, Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)/(processorTime(b)-began).Seconds()/1e6, "MB/cpu-s")
		})
	}
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
