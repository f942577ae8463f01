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

// Format is the version of the genesis document. This program knows no other.
const Format = 2

// What this program knows of runs. A later one may know more, and names it here.
const (
	Rules  = 1        // of the outer step
	Open   = "open"   // admission: everybody may contribute
	Invite = "invite" // admission: who was invited by one of Owners
	Seeded = "seed"   // initial values follow from the seed
	Given  = "given"  // initial values are what First says

	OwnTokenizer    = "own"    // learners of a Layout have one of their own
	CorpusTokenizer = "corpus" // the one that the manifest of Corpus names
)

// Genesis is the immutable document that the nodes of a run share. Everything
// that decides bits is in here or in the ledger. Its canonical bytes are the
// compact JSON of this struct; the RunID is their hash.
type Genesis struct {
	Format    int          // Format
	Rules     int          // Rules
	Name      string       // for people
	Admission string       // Open or Invite
	Owners    owners       // keys of those who admit others
	Model     llama.Config // sizes
	Layout    Layout       // tensors of a model that is not built in
	Init      string       // Seeded, or Given
	Recipe    string       // what learners of other frameworks have to agree on; empty
	Tokenizer string       // "byte", OwnTokenizer or CorpusTokenizer
	Seed      uint64       // of initial parameters and of every learner's batches
	Batch     int          // rows of one inner step of a learner of usual speed
	Inner     Inner        // inner optimizer
	Outer     outer.Params // outer step, windows, budget, creation time
	WayMs     int64        // first guess of the way between two nodes, milliseconds
	First     []string     `json:",omitempty"` // of the lists of the chunks of given initial values, see CutFirst
	Data      Data         // what the run's makers trained on: advice to joiners
	Corpus    *Corpus      `json:",omitempty"` // shards that all learners train on; nil: Data says what there is to say
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
	g, err := parse(b)
	if err != nil {
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

// parse reads a document. Of another format it reads nothing else, so that Validate can say which it is.
func parse(b []byte) (Genesis, error) {
	var version struct{ Format int }
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&version); err != nil {
		return Genesis{}, err
	}
	if version.Format != Format {
		return Genesis{Format: version.Format}, nil
	}
	var g Genesis
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return g, d.Decode(&g)
}

// owners is a list of public keys, which is written as [] where there are none.
type owners []wire.PeerID

// MarshalJSON writes the keys in hex.
func (o owners) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]wire.PeerID{}, o...))
}

// UnmarshalJSON reads them. None is nil.
func (o *owners) UnmarshalJSON(b []byte) error {
	var keys []wire.PeerID
	if err := json.Unmarshal(b, &keys); err != nil {
		return fmt.Errorf("entries of Owners: %w", err)
	}
	*o = nil
	if len(keys) > 0 {
		*o = keys
	}
	return nil
}
