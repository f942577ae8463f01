package sim

import "slices"

// memberLies are what a member may do in a random world: all that is known not to win.
var memberLies = []Attack{
	{Kind: SignFlip, Times: 1}, {Kind: Zero}, {Kind: Noise, Times: 1}, {Kind: Garbage}, {Kind: Unfinite},
	{Kind: Equivocate}, {Kind: LateProof, Times: 3}, {Kind: OneProof, Times: 4}, {Kind: ShownToHalf}, {Kind: WindowsEdge},
	{Kind: FalseHeartbeats}, {Kind: WithholdAll}, {Kind: WithholdSome}, {Kind: WrongPayloads}, {Kind: WrongChunks}, {Kind: ShortChunks},
	{Kind: FalseStates}, {Kind: StallRepairs},
}

// strangersLies are what one may do that never trains.
var strangersLies = []Attack{
	{Kind: StaleRounds}, {Kind: PayloadMissing, Times: 3}, {Kind: FreshHeartbeats, Times: 20}, {Kind: FalseHeartbeats},
	{Kind: BareHeaders, Times: 2}, {Kind: IdleCrowd, Times: 20}, {Kind: StallRepairs}, {Kind: WrongChunks},
}

// guestsLies are what one may do that came by an invite for guests: that, what members may do, and what wins in open runs.
var guestsLies = slices.Concat(strangersLies, memberLies, []Attack{
	{Kind: SignFlip, Times: 10}, {Kind: Scale, Times: 1000}, {Kind: Copy}, {Kind: Inflate, Times: -1}, {Kind: FarRounds}, {Kind: InventedRun, Ahead: 200},
	{Kind: SybilRun, Times: 6, Ahead: 200}, {Kind: ClaimRun, Times: 6, Ahead: 200}, {Kind: OneClaim}, {Kind: BurstRounds, Times: 40}, {Kind: LastRound},
})
