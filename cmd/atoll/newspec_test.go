package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// The maker writes what atoll new wrote before there was one, bit for bit.
func TestMakerWritesWhatWasWritten(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	data, owner := someText(t), wire.PeerID{1, 2, 3}
	large := filepath.Join(t.TempDir(), "large.json")
	if err := os.WriteFile(large, []byte(`{"vocab":256,"hidden":1024,"layers":24,"heads":16,"kvheads":4,"intermediate":4096,"context":512}`), 0o600); err != nil {
		t.Fatal(err)
	}
	model := someModel(t)
	for _, flags := range []string{
		"--tokens 1e6 --from " + model, "--tokens 1e6 --h 4 --batch 2 --context 16 --data " + data + " --from " + model,
		"--tokens 1e6 --bandwidth 20mbit --step 1s --learners 6 --lr 0.001 --codec sparse8 --from " + model,
		"", "--model small", "--learners 1", "--learners 2", "--learners 64", "--learners 1000 --answerers 40", "--h 100", "--h 4", "--h 2000", "--h 8 --merge clip",
		"--batch 1", "--batch 64", "--codec sparse", "--codec sparse8", "--codec sparse8 --h 8", "--codec f32", "--merge rda", "--merge mean",
		"--bandwidth 20mbit --step 50ms", "--bandwidth 2mbit --learners 8 --step 50ms", "--bandwidth 1mbit --step 1s --learners 32",
		"--bandwidth 100mbit --step 20s --learners 8 --codec int4 --model " + large, "--model " + large, "--window 1GB --model " + large,
		"--bandwidth 100mbit --step 20s --learners 64 --model " + large,
		"--optimizer adamw", "--lr 0.001", "--seed 9", "--fragments 5", "--tokens 1e6", "--profile lan", "--admission open",
		"--own-data --data " + data, "--data " + data, "--name mine --data " + data, "--h 24 --answerers 8 --learners 9",
	} {
		t.Run(flags, func(t *testing.T) {
			var parsed commandLine
			parser, err := kong.New(&parsed)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(append([]string{"new"}, strings.Fields(flags)...)); err != nil {
				t.Fatal(err)
			}
			c := &parsed.New
			before := former(t, c, now, owner)
			s, err := c.spec(now)
			if err != nil {
				t.Fatal(err)
			}
			if c.Admission != genesis.Open {
				s.Owners = []wire.PeerID{owner}
			}
			if c.Bandwidth != 0 {
				g, err := s.Trained()
				if err != nil {
					t.Fatal(err)
				}
				s.Links = c.links(g, c.Step)
			}
			g, _, err := s.Make()
			if err != nil {
				t.Fatal(err)
			}
			if a, b := before.Encode(), g.Encode(); !bytes.Equal(a, b) {
				t.Errorf("before\n%s\nnow\n%s", a, b)
			}
		})
	}
}

// former is what was written.
func former(t *testing.T, c *NewCmd, now time.Time, owner wire.PeerID) genesis.Genesis {
	t.Helper()
	g, train, config, err := formerBase(c, now)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.chooseLinks(t.Context(), &g)
	if err != nil {
		t.Fatal(err)
	}
	c.fit(&g, e)
	if run := runOf(g, c.Learners, train, e != nil); c.Tokens == nil {
		g.Outer.Budget = run.Enough()
	}
	if c.Data != "" && c.From != "" {
		text, err := corpus.Open(c.Data)
		if err != nil {
			t.Fatal(err)
		}
		g.Data = genesis.Data{Name: text.Name(), SHA256: text.SHA256()}
	}
	if c.From != "" {
		if err := g.SetRecipe(config); err != nil {
			t.Fatal(err)
		}
	}
	if g.Admission = c.Admission; c.Admission != genesis.Open {
		g.Owners, g.Outer.Revocations, g.Finality, g.Guests = append(g.Owners, owner), true, true, true
	}
	return g
}

func formerBase(c *NewCmd, now time.Time) (g genesis.Genesis, train int, config json.RawMessage, err error) {
	if c.From == "" {
		g, train, err = c.genesis(now)
		return g, train, nil, err
	}
	if g, config, _, err = genesis.FromModel(c.From, uint64(*c.Tokens), c.Seed, now.UnixMilli()); err != nil {
		return g, 0, nil, err
	}
	return g, 0, config, c.applyFrom(&g)
}

// someModel is a folder with a model of Hugging Face's form.
func someModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"gpt2","vocab_size":300,"n_positions":64}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	slab := tensor.NewSlab([]tensor.Spec{{Name: "wte.weight", Shape: []int{300, 64}}, {Name: "h.0.weight", Shape: []int{64, 256}}, {Name: "h.0.bias", Shape: []int{256}}})
	if err := errors.Join(safetensors.Write(f, slab, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}
