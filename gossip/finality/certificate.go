package finality

import (
	"fmt"

	"atoll/gossip/wire"
)

// MaxSize bounds an encoded certificate.
const MaxSize = wire.MaxFinal

// domainValue is of the digest of a value.
const domainValue = "atoll finality value 1"

// Point is a fragment's chain up to a round.
type Point struct {
	_ struct{} `cbor:",toarray"`

	Round uint32
	Chain wire.Digest
}

// Value is what voters agree on.
type Value struct {
	_ struct{} `cbor:",toarray"`

	Round  uint32        // up to which all fragments are certified that get so far
	Points []Point       // by fragment; one that ended before Round stands at its last round
	Voters []wire.PeerID // of the next height, ascending
}

// Digest names the value in a run.
func (v Value) Digest(run wire.RunID) wire.Digest {
	return wire.Sum(wire.Statement(domainValue, run, wire.Marshal(v)))
}

// Validate checks counts, ranges and order. Its error names the field.
func (v Value) Validate() error {
	if v.Round == 0 {
		return fmt.Errorf("%w round 0: want a round that has closed", wire.ErrInvalid)
	}
	if len(v.Points) == 0 || len(v.Points) > wire.MaxFragments {
		return fmt.Errorf("points: %w: %d, want 1..%d", wire.ErrSize, len(v.Points), wire.MaxFragments)
	}
	for f, p := range v.Points {
		if p.Round > v.Round {
			return fmt.Errorf("%w round %d of fragment %d: want at most %d", wire.ErrInvalid, p.Round, f, v.Round)
		}
	}
	_, err := NewTable(v.Voters)
	return err
}

// follows checks that v goes on from the value certified before.
func (v Value) follows(before Value) error {
	if v.Round <= before.Round {
		return fmt.Errorf("%w round %d: want one above %d, which is certified", wire.ErrInvalid, v.Round, before.Round)
	}
	if len(v.Points) != len(before.Points) {
		return fmt.Errorf("points: %w: %d, want %d as before", wire.ErrSize, len(v.Points), len(before.Points))
	}
	for f, p := range v.Points {
		if p.Round < before.Points[f].Round {
			return fmt.Errorf("%w round %d of fragment %d: %d is certified", wire.ErrInvalid, p.Round, f, before.Points[f].Round)
		}
	}
	return nil
}

// Seal is a voter's signature of its precommit.
type Seal struct {
	_ struct{} `cbor:",toarray"`

	Voter uint16 // place in the table
	Sig   wire.Signature
}

// Certificate says that a value is final. It is kept for ever.
type Certificate struct {
	_ struct{} `cbor:",toarray"`

	Height uint32
	View   uint32 // in which the voters precommitted
	Value  Value
	Seals  []Seal // by place, ascending
}

// Encode returns the certificate's bytes, at most MaxSize.
func (c Certificate) Encode() []byte { return wire.Marshal(c) }

// Parse decodes a certificate, within limits. It verifies no signature.
func Parse(b []byte) (Certificate, error) {
	if len(b) > MaxSize {
		return Certificate{}, fmt.Errorf("certificate: %w: %d bytes, at most %d", wire.ErrSize, len(b), MaxSize)
	}
	var c Certificate
	err := wire.Unmarshal(b, &c)
	if err == nil {
		err = c.validate()
	}
	if err != nil {
		return Certificate{}, fmt.Errorf("certificate: %w", err)
	}
	return c, nil
}

func (c Certificate) validate() error {
	if c.View > wire.MaxView {
		return fmt.Errorf("%w view %d: want at most %d", wire.ErrInvalid, c.View, wire.MaxView)
	}
	if len(c.Seals) == 0 || len(c.Seals) > MaxVoters {
		return fmt.Errorf("seals: %w: %d, want 1..%d", wire.ErrSize, len(c.Seals), MaxVoters)
	}
	for i := 1; i < len(c.Seals); i++ {
		if c.Seals[i].Voter <= c.Seals[i-1].Voter {
			return fmt.Errorf("seals: %w: voter %d does not come after %d", wire.ErrInvalid, c.Seals[i].Voter, c.Seals[i-1].Voter)
		}
	}
	return c.Value.Validate()
}

// Table is who votes at the next height.
func (c Certificate) Table() Table { return Table{c.Value.Voters} }

// Verify checks that c follows the certificate of the height before, and that enough of the voters that it
// lists signed c. The first certificate, of height 0, follows none: its own voters must have signed it, and nobody
// else says who they are.
func (c Certificate) Verify(run wire.RunID, before *Certificate) error {
	if err := c.verify(run, before); err != nil {
		return fmt.Errorf("certificate of height %d: %w", c.Height, err)
	}
	return nil
}

func (c Certificate) verify(run wire.RunID, before *Certificate) error {
	if err := c.validate(); err != nil {
		return err
	}
	table := c.Table()
	if before != nil {
		if c.Height != before.Height+1 {
			return fmt.Errorf("%w: want height %d", wire.ErrInvalid, before.Height+1)
		}
		if err := c.Value.follows(before.Value); err != nil {
			return err
		}
		table = before.Table()
	} else if c.Height != 0 {
		return fmt.Errorf("%w: want the first, of height 0", wire.ErrInvalid)
	}
	return c.verifySeals(run, table)
}

func (c Certificate) verifySeals(run wire.RunID, table Table) error {
	if !table.Enough(len(c.Seals)) {
		return fmt.Errorf("%w: %d of %d voters signed, want more than two thirds", wire.ErrInvalid, len(c.Seals), table.Len())
	}
	vote := wire.Vote{Phase: wire.Precommit, Height: c.Height, View: c.View, Round: c.Value.Round, Value: c.Value.Digest(run)}
	for _, s := range c.Seals {
		if int(s.Voter) >= table.Len() {
			return fmt.Errorf("%w voter %d: there are %d", wire.ErrInvalid, s.Voter, table.Len())
		}
		vote.Author = table.ids[s.Voter]
		if err := (wire.SignedVote{Vote: vote, Sig: s.Sig}).Verify(run); err != nil {
			return err
		}
	}
	return nil
}

// certificateOf makes a certificate of precommits for one value, in the order of the table.
func certificateOf(height, view uint32, value Value, table Table, precommits []wire.SignedVote) Certificate {
	c := Certificate{Height: height, View: view, Value: value}
	for _, s := range precommits {
		place, _ := table.Place(s.Author)
		c.Seals = append(c.Seals, Seal{Voter: uint16(place), Sig: s.Sig})
	}
	return c
}
