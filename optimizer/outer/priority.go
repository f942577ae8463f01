package outer

import (
	"cmp"
	"encoding/binary"

	"github.com/zeebo/blake3"
)

// Priority orders the deltas of a round that has more of them than a set can hold: the least
// are in it. It follows from the author's name, so that nobody chooses it for one round
// without a new key, and no author is first in every round.
type Priority struct {
	guest bool
	hash  uint64
	id    ID
}

// PriorityOf is the priority of a delta in its round of a run: the first 8 bytes of BLAKE3(run,
// author, fragment, round), and then the delta's id. Revocations come first, by their ids, and
// guests after all members.
func PriorityOf(run Digest, d Delta) Priority {
	if d.Revocation() {
		return Priority{id: d.ID}
	}
	b := make([]byte, 0, len(run)+len(d.Author)+6)
	b = append(append(b, run[:]...), d.Author[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(d.Fragment))
	b = binary.BigEndian.AppendUint32(b, d.Round)
	sum := blake3.Sum256(b)
	return Priority{d.Guest, binary.BigEndian.Uint64(sum[:]), d.ID}
}

// Compare is below 0 if p comes before q, and above 0 if q comes before p.
func (p Priority) Compare(q Priority) int {
	if p.guest != q.guest {
		if q.guest {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(p.hash, q.hash), CompareIDs(p.id, q.id))
}
