package genesis

import (
	"bytes"
	"encoding/json"
	"fmt"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor/llama"
)

// Rules is the version of the document and of all that follows from it. This program knows no other.
const Rules = 1

// Who may contribute to a run.
const (
	Open   = "open"   // everybody
	Invite = "invite" // who was invited by one of Owners
)

// What cuts texts into tokens.
const (
	ByteTokenizer   = "byte"
	OwnTokenizer    = "own"    // learners of a Layout have one of their own
	CorpusTokenizer = "corpus" // the one that Corpus names
)

// Genesis is the immutable document that the nodes of a run share. It has what was chosen, and all else that decides bits
// follows from it by the Rules or is in the ledger. Its canonical bytes are the compact JSON of this struct; the RunID is
// their hash.
type Genesis struct {
	Rules  int          // Rules
	Name   string       // for people
	Owners owners       // keys of those who admit others; none = everybody contributes
	Model  llama.Config // sizes
	Layout Layout       // tensors of a model that is not built in
	Recipe string       // what learners of other frameworks have to agree on; empty
	Seed   uint64       // of initial parameters and of every learner's batches
	Batch  int          // rows of one inner step of a learner of usual speed
	Inner  Inner        // inner optimizer
	Outer  outer.Spec   // outer step, budget, creation time; StepTokens is 0, see OuterParams
	WayMs  int64        // first guess of the way between two nodes, milliseconds
	First  []string     `json:",omitempty"` // of the lists of the chunks of given initial values, see CutFirst; none = they follow from Seed
	Files  []File       `json:",omitempty"` // that belong beside the weights of a Layout, by name
	Data   Data         // what the run's makers trained on: advice to joiners
	Corpus *Corpus      `json:",omitempty"` // shards that all learners train on; nil: Data says what there is to say
}

// Data names a corpus.
type Data struct {
	Name   string
	SHA256 string
}

// StepTokens are those of a step of a learner of usual speed.
func (g Genesis) StepTokens() uint64 { return uint64(g.Batch) * uint64(g.Model.Context) }

// OuterParams is what follows from the choices of the outer step.
func (g Genesis) OuterParams() outer.Params {
	s := g.Outer
	s.StepTokens = g.StepTokens()
	return s.Params()
}

// Admission says who may contribute.
func (g Genesis) Admission() string {
	if len(g.Owners) > 0 {
		return Invite
	}
	return Open
}

// Given says that the initial values are what First says. Otherwise they follow from Seed.
func (g Genesis) Given() bool { return len(g.First) > 0 }

// Tokenizer is what cuts the run's text into tokens.
func (g Genesis) Tokenizer() string {
	switch {
	case g.Corpus != nil:
		return CorpusTokenizer
	case !g.BuiltIn():
		return OwnTokenizer
	}
	return ByteTokenizer
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
		return Genesis{}, fmt.Errorf("genesis: %w; is this the genesis that `atoll new` wrote, with this version of atoll?", err)
	}
	if err := g.Validate(); err != nil {
		return Genesis{}, err
	}
	if !bytes.Equal(g.Encode(), b) {
		return Genesis{}, fmt.Errorf("genesis: the bytes are not in canonical form; copy the file unchanged from a node of the run")
	}
	return g, nil
}

// parse reads a document. Where the rules are others it reads nothing else, so that Validate can say which they are.
func parse(b []byte) (Genesis, error) {
	var version struct{ Rules int }
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&version); err != nil {
		return Genesis{}, err
	}
	if version.Rules != Rules {
		return Genesis{Rules: version.Rules}, nil
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
