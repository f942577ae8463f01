package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// MixConfig says what to mix.
type MixConfig struct {
	Out           string // folder
	Name, Licence string // Licence "": those of the corpora
	Mirrors       []string
	Corpora       []Weighed

	Progress func(done, all int64) // in bytes; called now and then, nil: not
}

// Weighed is a corpus in a folder, with all of its shards. Rows are drawn from it in proportion to Weight.
type Weighed struct {
	Dir    string
	Weight uint64
}

// MixResult is what was mixed.
type MixResult struct {
	Manifest *shards.Manifest
	Removed  int64 // documents that one corpus holds out and another would train on
}

// Mix makes one corpus of several that were built with one tokenizer. All shards are verified, and
// documents that one of the corpora holds out are taken out of what the others train on, if the
// tokenizer has an end token that parts them. Shards are hard links where the disk has them. After
// an interruption the same MixConfig goes on.
func Mix(ctx context.Context, c MixConfig) (MixResult, error) {
	m, err := openMix(c)
	if err != nil {
		return MixResult{}, err
	}
	if err := os.MkdirAll(filepath.Dir(shards.ShardFile(c.Out, shards.Digest{})), 0o777); err != nil {
		return MixResult{}, err
	}
	for i := range m.dirs {
		if err := m.takeHeldOut(ctx, i); err != nil {
			return MixResult{}, err
		}
	}
	for i := range m.dirs {
		if err := m.takeShards(ctx, i); err != nil {
			return MixResult{}, err
		}
	}
	return m.finish()
}

// mixer is a mixture in progress.
type mixer struct {
	MixConfig
	dirs      []*shards.Dir
	tokenizer token.Tokenizer
	manifest  shards.Manifest
	heldOut   map[shards.Digest]bool // documents, by the hash of their tokens
	removed   int64
	done, all int64 // bytes of shards
}

func openMix(c MixConfig) (*mixer, error) {
	if _, err := os.Stat(filepath.Join(c.Out, shards.ManifestFile)); err == nil {
		return nil, fmt.Errorf("%s has a corpus already: pass another folder", c.Out)
	}
	if n := len(c.Corpora); n < 2 || n > shards.MaxComponents {
		return nil, fmt.Errorf("a mixture is of 2 to %d corpora, and these are %d", shards.MaxComponents, n)
	}
	m := &mixer{MixConfig: c, heldOut: map[shards.Digest]bool{}}
	for _, w := range c.Corpora {
		d, err := shards.OpenDir(w.Dir)
		if err != nil {
			return nil, err
		}
		if d.Manifest.Mixed() {
			return nil, fmt.Errorf("%s is a mixture already: name the corpora that it was mixed of", w.Dir)
		}
		m.dirs = append(m.dirs, d)
		if first := m.dirs[0].Manifest.Tokenizer; d.Manifest.Tokenizer != first {
			return nil, fmt.Errorf("%s has the tokenizer %q (%.16s), and %s has %q (%.16s): build all with one tokenizer", w.Dir,
				d.Manifest.Tokenizer.Name, d.Manifest.Tokenizer.Digest, m.dirs[0].Path, first.Name, first.Digest)
		}
		m.all += d.Manifest.Bytes()
	}
	if err := m.begin(); err != nil {
		return nil, err
	}
	var err error
	m.tokenizer, err = m.dirs[0].Tokenizer()
	return m, err
}

// begin writes the part of the manifest that does not depend on what is in shards, and checks it.
func (m *mixer) begin() error {
	first := m.dirs[0].Manifest
	m.manifest = shards.Manifest{Format: shards.Format, Name: m.Name, Licence: m.Licence, Tokenizer: first.Tokenizer, Width: first.Width, Mirrors: m.Mirrors}
	var licences []string
	trial := m.manifest
	for i, d := range m.dirs {
		of := d.Manifest
		m.manifest.Mixture = append(m.manifest.Mixture, shards.Component{Name: of.Name, Licence: of.Licence, Digest: of.Digest(),
			Weight: m.Corpora[i].Weight, Mirrors: of.Mirrors, HeldOut: len(of.HeldOut), Shards: len(of.Shards)})
		if of.Licence != "" && !slices.Contains(licences, of.Licence) {
			licences = append(licences, of.Licence)
		}
		trial.HeldOut, trial.Shards = append(trial.HeldOut, of.HeldOut...), append(trial.Shards, of.Shards...)
	}
	m.manifest.Licence = cmp.Or(m.Licence, strings.Join(licences, " AND ")) // as SPDX writes it
	trial.Licence, trial.Mixture = m.manifest.Licence, m.manifest.Mixture
	if err := trial.Validate(); err != nil { // rather now than after all was read
		return fmt.Errorf("these corpora do not mix: %w", err)
	}
	return nil
}

// read returns the bytes of a shard, if they are the right ones.
func (m *mixer) read(ctx context.Context, d *shards.Dir, s shards.Shard) ([]byte, error) {
	b, err := d.Fetch(ctx, s)
	if err == nil {
		err = d.Manifest.Check(s, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: `atoll data show %s --verify` tells all that is wrong with it", d.Path, err, d.Path)
	}
	m.done += int64(len(b))
	if m.Progress != nil {
		m.Progress(m.done, m.all)
	}
	return b, nil
}

// takeHeldOut takes the held-out shards of a corpus, and notes their documents.
func (m *mixer) takeHeldOut(ctx context.Context, i int) error {
	d := m.dirs[i]
	for _, s := range d.Manifest.HeldOut {
		b, err := m.read(ctx, d, s)
		if err != nil {
			return err
		}
		for _, document := range m.documents(b) {
			m.heldOut[shards.Sum(document)] = true
		}
		if err := m.place(d, s, b); err != nil {
			return err
		}
		m.manifest.HeldOut = append(m.manifest.HeldOut, s)
	}
	return nil
}

// takeShards takes what a corpus trains on, without the documents that are held out.
func (m *mixer) takeShards(ctx context.Context, i int) error {
	d, before := m.dirs[i], len(m.manifest.Shards)
	for _, s := range d.Manifest.Shards {
		b, err := m.read(ctx, d, s)
		if err != nil {
			return err
		}
		if s, b = m.withoutHeldOut(s, b); len(b) == 0 {
			continue
		}
		if err := m.place(d, s, b); err != nil {
			return err
		}
		m.manifest.Shards = append(m.manifest.Shards, s)
	}
	m.manifest.Mixture[i].Shards = len(m.manifest.Shards) - before
	if m.manifest.Mixture[i].Shards == 0 {
		return fmt.Errorf("all that %s trains on is held out by another corpus: leave it out", d.Path)
	}
	return nil
}

// documents are the documents of a shard with their end tokens. A shard without end tokens has none.
func (m *mixer) documents(b []byte) (list [][]byte) {
	end := m.manifest.Tokenizer.End
	if end < 0 {
		return nil
	}
	width, mark, from := m.manifest.Width, shards.AppendTokens(nil, m.manifest.Width, []int32{end}), 0
	for at := 0; at < len(b); at += width {
		if string(b[at:at+width]) == string(mark) {
			list = append(list, b[from:at+width])
			from = at + width
		}
	}
	if from < len(b) {
		list = append(list, b[from:]) // of a document that is longer than a shard
	}
	return list
}

// withoutHeldOut is a shard without the documents that are held out: the same one, if it has none.
func (m *mixer) withoutHeldOut(s shards.Shard, b []byte) (shards.Shard, []byte) {
	var kept []byte
	for _, document := range m.documents(b) {
		if !m.heldOut[shards.Sum(document)] {
			kept = append(kept, document...)
			continue
		}
		m.removed++
		s.Bytes -= token.TextSize(m.tokenizer, m.manifest.Tokenizer.End, -1, shards.TokensOf(document, m.manifest.Width))
	}
	if m.manifest.Tokenizer.End < 0 || len(kept) == len(b) {
		return s, b
	}
	s.Digest, s.Tokens = shards.Sum(kept), int64(len(kept)/m.manifest.Width)
	return s, kept
}

// place puts a shard into the folder: by a link to that of the corpus, or else by a copy.
func (m *mixer) place(d *shards.Dir, s shards.Shard, b []byte) error {
	path := shards.ShardFile(m.Out, s.Digest)
	err := os.Link(shards.ShardFile(d.Path, s.Digest), path)
	if err == nil || errors.Is(err, os.ErrExist) && shards.FileHas(path, s.Digest) {
		return nil
	}
	return shards.WriteFile(path, b)
}

func (m *mixer) finish() (MixResult, error) {
	if err := m.manifest.Validate(); err != nil {
		return MixResult{}, err
	}
	if digest := m.manifest.Tokenizer.Digest; digest != (shards.Digest{}) {
		file, err := shards.ReadTokenizerFile(m.dirs[0].Path, digest)
		if err == nil {
			err = shards.WriteFile(filepath.Join(m.Out, shards.TokenizerFile), file)
		}
		if err != nil {
			return MixResult{}, err
		}
	}
	err := shards.WriteFile(filepath.Join(m.Out, shards.ManifestFile), m.manifest.Encode())
	return MixResult{Manifest: &m.manifest, Removed: m.removed}, err
}
