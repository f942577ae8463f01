package build

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// mixable builds corpora of documents with one tokenizer and one seed, and returns their folders. Tokens are bytes
// if plain.
func mixable(t *testing.T, plain bool, corpora ...[]string) (dirs []string) {
	t.Helper()
	var all []string
	for _, texts := range corpora {
		all = append(all, texts...)
	}
	for i, texts := range corpora {
		c := config(t, inputs(t, map[string]string{"a.jsonl": jsonLines(texts)}), all)
		if plain {
			c.Tokenizer, c.TokenizerFile = token.Byte, nil
		}
		c.Name, c.Licence = string(rune('a'+i)), []string{"CC0-1.0", "BSD-3-Clause", ""}[i%3]
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, c.Out)
	}
	return dirs
}

func mixOf(t *testing.T, dirs ...string) MixConfig {
	c := MixConfig{Out: filepath.Join(t.TempDir(), "mixed"), Name: "mixed"}
	for i, dir := range dirs {
		c.Corpora = append(c.Corpora, Weighed{dir, uint64(i + 1)})
	}
	return c
}

// TestMix: a mixture has the documents of its corpora, in its own folder, and is right.
func TestMix(t *testing.T) {
	all := sentences(90)
	dirs := mixable(t, false, all[:50], all[50:])
	c := mixOf(t, dirs...)
	var said int64
	c.Progress = func(done, of int64) { said = of - done }
	result, err := Mix(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if said != 0 || result.Removed != 0 {
		t.Errorf("%d bytes left at the end, %d documents removed", said, result.Removed)
	}
	d, err := shards.OpenDir(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	m := d.Manifest
	if m.Digest() != result.Manifest.Digest() || m.Licence != "CC0-1.0 AND BSD-3-Clause" || m.Mixture[0].Name != "a" || m.Mixture[1].Weight != 2 {
		t.Errorf("the manifest is\n%s", m.Encode())
	}
	for _, list := range []func(*shards.Manifest) []shards.Shard{heldOut, train} {
		want := slices.Concat(decoded(t, dirs[0], list), decoded(t, dirs[1], list))
		if got := decoded(t, c.Out, list); !slices.Equal(got, want) {
			t.Errorf("the mixture has %d documents, want %d", len(got), len(want))
		}
	}
	if _, err := Mix(t.Context(), c); err == nil || !strings.Contains(err.Error(), "has a corpus already") {
		t.Errorf("error %v of a folder that has a corpus", err)
	}
	of := mixOf(t, c.Out, dirs[0])
	if _, err := Mix(t.Context(), of); err == nil || !strings.Contains(err.Error(), "is a mixture already") {
		t.Errorf("error %v of a mixture of a mixture", err)
	}
}

// TestMixHoldsOut: what one corpus holds out no other trains on.
func TestMixHoldsOut(t *testing.T) {
	all := sentences(120)
	dirs := mixable(t, false, all[:60], all) // the second has the documents of the first, and holds others out
	held := slices.Concat(decoded(t, dirs[0], heldOut), decoded(t, dirs[1], heldOut))
	var both int64
	for _, document := range slices.Concat(decoded(t, dirs[0], train), decoded(t, dirs[1], train)) {
		if slices.Contains(held, document) {
			both++
		}
	}
	if both == 0 {
		t.Fatal("these corpora have nothing to remove")
	}
	c := mixOf(t, dirs...)
	result, err := Mix(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if result.Removed != both {
		t.Errorf("%d documents were removed, want %d", result.Removed, both)
	}
	for _, document := range decoded(t, c.Out, train) {
		if slices.Contains(held, document) {
			t.Errorf("it trains on %q, which is held out", document)
		}
	}
	if got := decoded(t, c.Out, heldOut); !slices.Equal(got, held) {
		t.Errorf("%d documents are held out, want %d", len(got), len(held))
	}
}

// TestMixGoesOn: after an interruption, or beside shards that an earlier one left in pieces.
func TestMixGoesOn(t *testing.T) {
	all := sentences(60)
	dirs := mixable(t, true, all[:30], all[30:])
	whole := mixOf(t, dirs...)
	want, err := Mix(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	c := mixOf(t, dirs...)
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(done, all int64) {
		if done > all/2 {
			cancel()
		}
	}
	if _, err := Mix(ctx, c); err == nil || shards.IsDir(c.Out) {
		t.Fatalf("error %v of an interruption, and a corpus: %v", err, shards.IsDir(c.Out))
	}
	torn := shards.ShardFile(c.Out, want.Manifest.HeldOut[0].Digest)
	if err := os.Remove(torn); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Progress = nil
	if _, err := Mix(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if a, b := files(t, whole.Out), files(t, c.Out); len(a) == 0 || !maps.Equal(a, b) {
		t.Error("the mixture is another one after an interruption")
	}
}

// TestMixRefuses what does not go together, and what is damaged.
func TestMixRefuses(t *testing.T) {
	all := sentences(60)
	dirs := mixable(t, false, all[:30], all[30:])
	others := mixable(t, true, all[:30])
	refused := func(c MixConfig, want string) {
		t.Helper()
		if _, err := Mix(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if shards.IsDir(c.Out) {
			t.Error("there is a corpus all the same")
		}
	}
	refused(mixOf(t, dirs[0]), "2 to 16 corpora, and these are 1")
	refused(mixOf(t, dirs[0], others[0]), "build all with one tokenizer")
	refused(mixOf(t, dirs[0], dirs[0]), "is there twice")
	refused(mixOf(t, dirs[0], t.TempDir()), "open corpus")
	heavy := mixOf(t, dirs...)
	heavy.Corpora[1].Weight = 0
	refused(heavy, "its weight is 0")
	d, err := shards.OpenDir(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	path := shards.ShardFile(dirs[1], d.Manifest.Shards[0].Digest)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(mixOf(t, dirs...), "its bytes are damaged: `atoll data show")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	refused(mixOf(t, dirs...), "it is not there")
}
