package finality

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"atoll/gossip/wire"
)

// MaxVoters bounds a table. A certificate has up to one signature of 67 bytes and one name of 34 for each
// voter: 128 keep it within a few of the blocks that travel anyway. In a larger run those vote who
// contribute most.
const MaxVoters = 128

// domainProposer is of the digest that draws the proposer of a view.
const domainProposer = "atoll proposer 1"

// Table is who votes at a height, one vote each.
type Table struct{ ids []wire.PeerID }

// NewTable is a table of 1 to MaxVoters voters, in ascending order.
func NewTable(ids []wire.PeerID) (Table, error) {
	if len(ids) == 0 || len(ids) > MaxVoters {
		return Table{}, fmt.Errorf("voters: %w: %d, want 1..%d", wire.ErrSize, len(ids), MaxVoters)
	}
	for i := 1; i < len(ids); i++ {
		if ids[i-1].Compare(ids[i]) >= 0 {
			return Table{}, fmt.Errorf("voters: %w: %v does not come after %v", wire.ErrInvalid, ids[i], ids[i-1])
		}
	}
	return Table{slices.Clone(ids)}, nil
}

// Len is the number of voters.
func (t Table) Len() int { return len(t.ids) }

// IDs are the voters in ascending order.
func (t Table) IDs() []wire.PeerID { return slices.Clone(t.ids) }

func sameTable(a, b Table) bool { return slices.Equal(a.ids, b.ids) }

// Place returns the place of a voter in the table, counted from 0.
func (t Table) Place(id wire.PeerID) (place int, is bool) {
	return slices.BinarySearchFunc(t.ids, id, wire.PeerID.Compare)
}

// Enough reports whether n voters are more than two thirds: of two such groups more than a third of
// the voters are in both.
func (t Table) Enough(n int) bool { return 3*n > 2*len(t.ids) }

// SomeHonest reports whether n voters are more than a third, so that one of them is honest.
func (t Table) SomeHonest(n int) bool { return 3*n > len(t.ids) }

// Proposer is who proposes in a view. It follows from a hash, so that nobody can arrange to be next.
func (t Table) Proposer(run wire.RunID, height, view uint32) wire.PeerID {
	b := binary.BigEndian.AppendUint32(nil, height)
	drawn := wire.Sum(wire.Statement(domainProposer, run, binary.BigEndian.AppendUint32(b, view)))
	return t.ids[binary.BigEndian.Uint64(drawn[:])%uint64(len(t.ids))]
}

// Candidate is an author whose deltas were folded in the rounds that elect the voters of a height.
type Candidate struct {
	Author wire.PeerID
	Deltas int         // folded in these rounds
	Invite wire.PeerID // key of the invite by which it was admitted; zero in a run that is open
	Uses   uint32      // nodes that the invite is meant for; 0 for any number
}

// Elect returns the voters among candidates, in ascending order: those with the most deltas folded, at most
// MaxVoters, and of one invite no more than the nodes that it is meant for. Equals stand in the order of their names.
func Elect(candidates []Candidate) []wire.PeerID {
	sorted := slices.Clone(candidates)
	slices.SortFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Deltas, a.Deltas), bytes.Compare(a.Author[:], b.Author[:]))
	})
	seats := map[wire.PeerID]uint32{}
	voters := []wire.PeerID{}
	for _, c := range sorted {
		if len(voters) == MaxVoters {
			break
		}
		if c.Uses > 0 && seats[c.Invite] >= c.Uses {
			continue
		}
		seats[c.Invite]++
		voters = append(voters, c.Author)
	}
	slices.SortFunc(voters, wire.PeerID.Compare)
	return voters
}

// DefaultStepMs is Config.StepMs of runs. Votes reach everybody within a second or two, whatever the links. A
// certificate comes some time after its rounds are final in any case, so nothing is gained by less.
const DefaultStepMs = 5000

// Every is the rounds between two values of a run: a quarter of its union window. Values are certified some time
// after they left that window, so a shorter way between them would say nothing sooner.
func Every(windowUnion uint32) uint32 { return max(1, windowUnion/4) }
