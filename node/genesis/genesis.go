// Package genesis is the document that the nodes of a run share. It fixes the
// model, both optimizers and the times of the run; the hash of its bytes is the
// RunID. Others ask peers for the document and keep it on disk.
package genesis

import (
	"bytes"
	"encoding/json"
	"fmt"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor/llama"
)

// Format is the version of the genesis document that this program
// reads and writes.
const Format = 1

// Genesis is the immutable document that the nodes of a run share. Everything
// that decides bits is in here or in the ledger. Its canonical bytes are the
// compact JSON of this struct; the RunID is their hash.
type Genesis struct {
	Format    int          // Format
	Name      string       // for people
	Model     llama.Config // sizes
	Tokenizer string       // "byte"
	Seed      uint64       // of initial parameters and of every learner's batches
	Batch     int          // rows of one inner step of a learner of usual speed
	Inner     Inner        // inner optimizer
	Outer     outer.Params // outer step, windows, budget, creation time
	BeatMs    int64        // beat period for small runs, milliseconds
	QuietMs   int64        // how long all live beats must agree before the run counts as over
	Data      Data         // what the run's makers trained on: advice to joiners
}

// Data names a corpus.
type Data struct {
	Name   string
	SHA256 string
}

// Encode returns the canonical bytes.
func (g Genesis) Encode() []byte {
	b, err := json.Marshal(g)
	if err != nil {
		panic("encode genesis: " + err.Error()) // only a NaN could fail, and Validate refuses it
	}
	return b
}

// RunID is the hash of the canonical bytes.
func (g Genesis) RunID() wire.RunID { return wire.RunID(wire.Sum(g.Encode())) }

// Decode reads canonical bytes and validates them.
func Decode(b []byte) (Genesis, error) {
	if len(b) > wire.MaxGenesis {
		return Genesis{}, fmt.Errorf("genesis: %d bytes; the limit is %d", len(b), wire.MaxGenesis)
	}
	var g Genesis
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return Genesis{}, fmt.Errorf("genesis: %w; is this a genesis of another version?", err)
	}
	if err := g.Validate(); err != nil {
		return Genesis{}, err
	}
	if !bytes.Equal(g.Encode(), b) {
		return Genesis{}, fmt.Errorf("genesis: the bytes are not in canonical form; copy the file unchanged from a node of the run")
	}
	return g, nil
}
