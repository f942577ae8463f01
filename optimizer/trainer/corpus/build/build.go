package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// Config says what to build of what.
type Config struct {
	Out    string // folder
	Inputs []documents.File
	Field  string // see documents.Options
	Broken int64  // lines and rows of all inputs that may be left out because they are broken

	Tokenizer     token.Tokenizer
	TokenizerName string // its family, or "byte"
	TokenizerFile []byte // tokenizer.json; nil for bytes

	Name, Licence string
	Mirrors       []string
	Seed          uint64
	HeldOut       float64 // share of the tokens, of which there is at most one shard

	Workers  int            // goroutines that encode; 0: one a core
	Progress func(Progress) // called now and then, from one goroutine; nil: not
}

// Progress is how far a build is.
type Progress struct {
	Read, Total int64 // bytes of inputs
	Resumed     int64 // of Read, what an earlier build had read
	Documents   int64
	Text        int64 // bytes of text in them
	Tokens      int64
	Writing     bool    // all is read, shards are written
	Written     float64 // share of that which is done, 0 to 1
}

// Result is what was built.
type Result struct {
	Manifest   *shards.Manifest
	Documents  int64 // read
	Duplicates int64 // of those, left out because they were there already
	Tally      documents.Tally
}

// workFolder is what Out has besides the corpus while it is built.
const workFolder = "building"

// Run builds a corpus. After an error or an interruption the same Config goes on.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	_, err := os.Stat(c.Out)
	made := errors.Is(err, fs.ErrNotExist)
	result, err := c.run(ctx)
	if err != nil && made && ctx.Err() == nil { // one that was interrupted goes on
		err = errors.Join(err, os.RemoveAll(c.Out))
	}
	return result, err
}

func (c Config) run(ctx context.Context) (Result, error) {
	b, err := open(c)
	if err != nil {
		return Result{}, err
	}
	if err := errors.Join(b.read(ctx), b.buckets.close()); err != nil {
		return Result{}, err
	}
	return b.finish(ctx)
}

func (c *Config) check() error {
	m := c.manifest()
	m.HeldOut = []shards.Shard{{Digest: shards.Digest{1}, Tokens: 1}}
	m.Shards = []shards.Shard{{Tokens: 1}}
	if err := m.Validate(); err != nil { // rather now than after hours
		return err
	}
	if !(c.HeldOut > 0 && c.HeldOut < 1) {
		return fmt.Errorf("the share that is held out is %v: use a number between 0 and 1", c.HeldOut)
	}
	if _, err := os.Stat(filepath.Join(c.Out, shards.ManifestFile)); err == nil {
		return fmt.Errorf("%s has a corpus already: pass another folder", c.Out)
	}
	files, err := os.ReadDir(c.Out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: pass a folder for --out", err)
	}
	if len(files) > 0 && !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return f.Name() == workFolder }) {
		return fmt.Errorf("%s has other files, such as %s: pass a new folder", c.Out, files[0].Name())
	}
	return nil
}

// manifest is the manifest without its shards.
func (c *Config) manifest() shards.Manifest {
	t := shards.ByteTokenizer()
	if c.TokenizerFile != nil {
		t = shards.Tokenizer{Name: c.TokenizerName, Size: c.Tokenizer.Size(), End: -1, Digest: shards.Sum(c.TokenizerFile)}
		if end, ok := c.Tokenizer.End(); ok {
			t.End = end
		}
	}
	return shards.Manifest{Format: shards.Format, Name: c.Name, Licence: c.Licence, Tokenizer: t,
		Width: shards.WidthFor(t.Size), Seed: c.Seed, Mirrors: c.Mirrors}
}

// state is what an interrupted build knows of itself.
type state struct {
	Of        shards.Digest      `json:"of"`     // what is built: see Config.fingerprint
	File      int                `json:"file"`   // input that is being read
	Skip      int64              `json:"skip"`   // its documents that are done
	Before    int64              `json:"before"` // bytes of the inputs before it
	Read      int64              `json:"read"`
	Tally     documents.Tally    `json:"tally"` // of the inputs before it
	Documents int64              `json:"documents"`
	Text      int64              `json:"text"`
	Tokens    int64              `json:"tokens"` // with end tokens
	Buckets   [bucketCount]int64 `json:"buckets"`
}

const stateFile = "state.json"

// fingerprint tells whether an interrupted build was of the same: it is a hash of all that
// bears on the outcome, but for the contents of inputs, of which it has names and sizes.
func (c *Config) fingerprint() shards.Digest {
	b, err := json.Marshal([]any{c.manifest(), c.Field, c.HeldOut, c.Inputs})
	if err != nil {
		panic("build: " + err.Error()) // numbers and text
	}
	return shards.Sum(b)
}

// builder is a build in progress.
type builder struct {
	Config
	work    string
	width   int
	end     int32
	state   state
	resumed int64
	written float64 // share of the documents that are in shards
	buckets *buckets
}

// open begins a build, or goes on with one.
func open(c Config) (*builder, error) {
	m := c.manifest()
	b := &builder{Config: c, state: state{Tally: documents.Tally{}}, work: filepath.Join(c.Out, workFolder), width: m.Width, end: m.Tokenizer.End}
	if err := os.MkdirAll(b.work, 0o777); err != nil {
		return nil, err
	}
	if err := b.load(); err != nil {
		return nil, err
	}
	b.resumed = b.state.Read
	var err error
	b.buckets, err = openBuckets(b.work, b.state.Buckets)
	return b, err
}

func (b *builder) load() error {
	data, err := os.ReadFile(filepath.Join(b.work, stateFile))
	if errors.Is(err, os.ErrNotExist) {
		b.state.Of = b.fingerprint()
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &b.state)
	}
	if err == nil && b.state.Of != b.fingerprint() {
		err = errors.New("it has a build of other inputs or with other flags: pass them again, or another folder")
	}
	if err != nil {
		return fmt.Errorf("go on in %s: %w", b.Out, err)
	}
	return nil
}

func (b *builder) save() error {
	if err := b.buckets.sync(); err != nil {
		return err
	}
	b.state.Buckets = b.buckets.sizes
	data, err := json.Marshal(b.state)
	if err != nil {
		return err
	}
	return shards.WriteFile(filepath.Join(b.work, stateFile), data)
}

func (b *builder) report(writing bool) {
	b.Progress(Progress{Read: b.state.Read, Total: documents.Size(b.Inputs), Resumed: b.resumed, Documents: b.state.Documents,
		Text: b.state.Text, Tokens: b.state.Tokens, Writing: writing, Written: b.written})
}
