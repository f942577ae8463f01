// Package aggregation simulates how the deltas of a round reach all learners, for up to ten thousand of them: what each plan
// costs in bytes, time and cores, and what liars can move by it.
//
// # Plans
//
//   - all-to-all: every learner receives every delta.
//   - sampled: so many learners publish in a round, by rotation. It is what atoll does where more learners train than
//     outer.Params.LearnersPerRound.
//   - aggregators: a hash draws groups for each fragment and round, and some members of each as its aggregators. These fetch
//     the group's deltas, fold them, encode what comes out, and publish that as a merged delta. All fold the merged deltas.
//   - tree: merged deltas are merged again, so many times over.
//
// # Who can be believed
//
// A merged delta is a pure function of the deltas of its group and of the last tip, so two aggregators that hold one set make
// the same bytes in any order, and anybody can make them again. Detection is that. A node folds a merged delta once all
// aggregators of its group that are there have signed the same bytes. Where they differ, each node makes it again before it
// folds. A hash draws auditors of each merged delta among all nodes, who make it again in any case. A node that finds other bytes
// publishes the aggregators' headers, which are a proof once others have made it again. Then the round is folded anew with
// what is right, as after a fork, and the aggregators are excluded.
//
// # The model of the network
//
// Links are equal, carry so much each way, and have a delay. A header reaches a node after the hops of gossip. A payload is
// announced, asked for and sent, as in gossip: three delays and its own time on the link. A node that has it passes it on, to one
// after the other, until all have it: so no uplink rests while it has what others lack. Uplinks and downlinks serve
// what comes first. A delta leaves at the end of the step in which its learner heard the proposal.
//
// Rounds of one fragment after the other begin as they do in a run, H steps over the fragments apart, and share the links.
// Losses, joiners, heartbeats and votes are left out. What a plan costs the model is measured elsewhere, by folds of real deltas
// (testnet/lab/sweep, the arm aggregated; testnet/lab/RESULTS.md, "Past all-to-all").
package aggregation
