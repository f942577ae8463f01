package wire

import "fmt"

// Limits on what nodes ask each other about votes.
const (
	// MaxFinal bounds the certificate of a height: 128 names and signatures, and a point of up to 40 bytes for
	// each of MaxFragments.
	MaxFinal = 32 << 10
	// MaxFinals bounds the certificates in one answer: a node that was away for thousands of rounds asks again.
	MaxFinals = 64
	// MaxVotes bounds the votes in one answer: those of 128 voters in two phases of two views.
	MaxVotes = 512
	// MaxKnownVotes bounds the votes that a request says the asker has.
	MaxKnownVotes = 2 * MaxVotes

	// maxFinalsBody is what a server gives at most at once. One certificate fits in any case.
	maxFinalsBody = 256 << 10
	maxVotesBody  = arrayHead + MaxVotes*(arrayHead+MaxVote)
)

// EncodeVotes returns the body that answers GetVotes.
func EncodeVotes(votes []SignedVote) []byte {
	items := make([][]byte, len(votes))
	for i, v := range votes {
		items[i] = v.Encode()
	}
	return Marshal(items)
}

// DecodeVotes decodes it, within limits. It verifies no signature.
func DecodeVotes(b []byte) ([]SignedVote, error) {
	items, err := decodeItems(b, MaxVotes, MaxVote, "votes")
	votes := make([]SignedVote, len(items))
	for i := range items {
		if votes[i], err = decodeVote(items[i]); err != nil {
			return nil, fmt.Errorf("decode votes: %w", err)
		}
	}
	return votes, err
}

// EncodeFinals returns the body that answers GetFinals: of certificates of heights that follow each other as many as
// fit an answer.
func EncodeFinals(certificates [][]byte) []byte {
	size, n := arrayHead, 0
	for n < min(len(certificates), MaxFinals) && size+arrayHead+len(certificates[n]) <= maxFinalsBody {
		size += arrayHead + len(certificates[n])
		n++
	}
	return Marshal(append([][]byte{}, certificates[:n]...))
}

// DecodeFinals decodes it, within limits. What a certificate is, package finality knows.
func DecodeFinals(b []byte) ([][]byte, error) { return decodeItems(b, MaxFinals, MaxFinal, "finals") }

// decodeItems decodes an array of byte strings, of at most so many with at most so many bytes.
func decodeItems(b []byte, most, mostBytes int, what string) (items [][]byte, err error) {
	if err := Unmarshal(b, &items); err != nil {
		return nil, fmt.Errorf("decode %s: %w", what, err)
	}
	if len(items) > most {
		return nil, fmt.Errorf("decode %s: %w: %d, at most %d", what, ErrSize, len(items), most)
	}
	for _, item := range items {
		if len(item) == 0 || len(item) > mostBytes {
			return nil, fmt.Errorf("decode %s: %w: one of %d bytes, want 1..%d", what, ErrSize, len(item), mostBytes)
		}
	}
	return items, nil
}
