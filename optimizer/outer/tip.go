package outer

// Tip is the state of a fragment after a closed round. It is never modified once made;
// tips of successive rounds may share memory.
type Tip struct {
	Round    uint32    // the last closed round, 0 at genesis
	Anchor   []float32 // A [Len]
	Momentum []float32 // outer momentum of progress [Len]; nil if Params.Mu is 0
	Ref      []float32 // norm reference per tensor, 0 where not yet known
	Tokens   uint64    // T_p: tokens folded so far
	EndRound uint32    // E_p: first round at which Tokens reached the budget, 0 before
	Chain    Digest    // c_r: which deltas were folded, in which rounds
	State    Digest    // h_r: BLAKE3 of Encode, all of the above
}
