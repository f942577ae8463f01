package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// What is scored: at the end all of the held-out text, or of a larger one
// finalBytes spread over it, and on the way sampleBytes.
const (
	finalBytes  = 64 << 10
	sampleBytes = 16 << 10
)

// Lab keeps the texts that trials were run on, for the next trials.
type Lab struct{ texts map[string][]*corpus.Corpus }

// NewLab returns a lab without texts.
func NewLab() *Lab { return &Lab{texts: map[string][]*corpus.Corpus{}} }

// Names of texts beside paths.
const (
	dataProse = "prose"
	dataBoth  = "both" // learners with even numbers read prose, the others code
)

// open returns the texts of a setting. Learner i reads number i, round and
// round.
func (l *Lab) open(data string) ([]*corpus.Corpus, error) {
	if texts, ok := l.texts[data]; ok {
		return texts, nil
	}
	names := []string{data}
	switch data {
	case dataProse:
		names = []string{corpus.Prose}
	case dataBoth:
		names = []string{corpus.Prose, corpus.GoCode}
	}
	var texts []*corpus.Corpus
	for _, name := range names {
		c, err := corpus.Open(name)
		if err != nil {
			return nil, err
		}
		texts = append(texts, c)
	}
	l.texts[data] = texts
	return texts, nil
}

// bench is what one trial is run on.
type bench struct {
	Setting
	seed   uint64
	model  llama.Config
	shards []shard // of each learner
	texts  []*corpus.Corpus
	optim  trainer.OptimConfig
	curve  []Point
}

func (l *Lab) bench(s Setting, seed uint64) (*bench, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	texts, err := l.open(s.Data)
	if err != nil {
		return nil, err
	}
	b := &bench{Setting: s, seed: seed, model: c, texts: texts, optim: s.optimizer()}
	for i := range s.M {
		b.shards = append(b.shards, b.shard(i))
	}
	return b, nil
}

// shard is what learner i draws from.
func (b *bench) shard(i int) shard {
	text := b.texts[i%len(b.texts)]
	if b.Shards == ShardsSplit {
		all := text.Train()
		i := i % b.M
		text = corpus.New(text.Name(), all[len(all)*i/b.M:len(all)*(i+1)/b.M])
	}
	return shard{text, [32]byte{byte(i), byte(i >> 8)}}
}

// sha256 names the texts.
func (b *bench) sha256() string {
	if len(b.texts) == 1 {
		return b.texts[0].SHA256()
	}
	h := sha256.New()
	for _, t := range b.texts {
		h.Write([]byte(t.SHA256()))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// windows are so many bytes of the held-out texts, the same of each.
func (b *bench) windows(bytes int) (all [][]byte) {
	for _, t := range b.texts {
		all = append(all, t.HeldOutSample(bytes/len(b.texts), b.model.Context)...)
	}
	return all
}

// initial are the parameters that every baseline begins with.
func (b *bench) initial() []float32 {
	slab := llama.NewParams(b.model)
	llama.Init(b.model, slab, b.seed)
	return slab.Data
}

// bits are those per byte of so many held-out bytes.
func (b *bench) bits(params []float32, bytes int) (float64, error) {
	slab := llama.NewParams(b.model)
	copy(slab.Data, params)
	return trainer.BitsPerByte(context.Background(), b.model, slab, b.windows(bytes))
}

// newTrainer makes a trainer of so many rows.
func (b *bench) newTrainer(rows int, data trainer.Source, author [32]byte) (*trainer.Builtin, error) {
	return trainer.New(trainer.Config{
		Model: b.model, Batch: rows, Optim: b.optim, Seed: b.seed, Author: author, Threads: 1,
	}, data)
}

// curvePoints is how often a trial is measured on the way.
const curvePoints = 8

// Point is a trial on the way.
type Point struct {
	Tokens uint64  `json:"tokens"` // folded
	BPB    float64 `json:"bpb"`    // on a sample of 16 KiB
}

// look measures where the next point of the curve is due.
func (b *bench) look(tokens uint64, params func() []float32) error {
	due := uint64(len(b.curve)+1) * b.Tokens / curvePoints
	if tokens < due || len(b.curve) == curvePoints {
		return nil
	}
	bits, err := b.bits(params(), sampleBytes)
	if err != nil {
		return fmt.Errorf("at %d tokens: %w", tokens, err)
	}
	b.curve = append(b.curve, Point{tokens, bits})
	return nil
}

func (b *bench) specs() []tensor.Spec { return b.model.Specs() }
