// Package outer is the outer step of leaderless Decoupled DiLoCo (after arXiv
// 2604.21428). It makes one model of the progress of many learners without a
// server, a vote or a wait.
//
// Files, each may use those above it:
//
//	work                   an amount of training
//	params                 what is fixed of the outer step, in bounds
//	spec                   what is chosen of it
//	plan                   fragments of the parameters
//	revoke, delta          deltas, and those that revoke a name
//	counted                tokens that count
//	link                   a closed round
//	priority               which deltas of a round come first
//	tip                    the state of a fragment after a round
//	weights                what each delta weighs
//	fold                   the fold of a round, whose rules stand below
//	sources                read deltas part by part
//	clip                   bound what a delta moves
//	duplicate, reputation  checked work, and copies
//	centre                 centred clipping
//	silent                 deltas that say nothing
//	verify                 replay what was recorded
//	adopt                  what a new tip changes for own deltas
//	learner, learner_own, learner_device, learner_late, learner_held, learner_follow  local parameters, in step with the tips
//
// # The idea
//
// Global state is a deterministic fold over a replicated set of deltas. Nodes
// that hold the same deltas hold the same bits, so agreeing on a set is enough,
// and gossip is good at sets. The rule that everything rests on: whatever decides
// bits is a pure function of [Params], deltas and payloads. Clocks, peer lists and
// rates may delay a round; they never decide one.
//
// # Words
//
//   - A fragment is one of P disjoint groups of tensors of about equal size; a
//     [Plan] lists them. Each fragment has rounds of its own, counted from 1.
//   - A [Delta] is what a signed header says of one learner's contribution to one
//     (fragment, round). A [Contribution] is a delta with its compressed payload.
//   - A [Tip] is the state of a fragment after a closed round: global parameters A, outer
//     momentum m, norm reference ref, tokens folded.
//   - [Fold] makes the next tip from a tip and a set of contributions.
//   - A [Learner] keeps the local parameters theta, which are trained, in step with
//     the tips: own deltas are its deltas that are not final yet, and its unpublished
//     progress is U = theta - A - sum(s_k q_k : own k not folded).
//     The shares s_k are 1 unless folds come late. With a sparse codec most of U
//     does not travel: half of that part is held outside the local parameters and
//     added to the next U.
//
// # Sign
//
// A payload holds progress: new minus old parameters, the negative of an outer
// gradient. Hence a fold adds. With u the merged progress the Nesterov step is
//
//	m' = mu m + u
//	A' = A + eta (u + mu m')
//
// which is m = mu m + g, A -= eta (g + mu m) for g = -u, with m kept negated.
//
// # Bits
//
// A fold gives the same bits on every architecture:
//
//   - Values are float32. Sums are float64 over fixed lanes, added by a fixed tree.
//   - Every product is rounded before it is added: float64(x*y) + z, since Go may
//     fuse x*y + z.
//   - Of package math only Sqrt, Abs and predicates are used.
//   - No NaN is ever made, because its sign differs between architectures: payloads
//     with one are refused, and what does not fit a float32 saturates.
//
// The package has no clock, goroutine, random source or I/O. Its functions may be
// called concurrently, except for the methods of [Learner]. Tips are never modified
// once made and may share memory.
package outer
