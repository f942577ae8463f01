// Package rounds decides, for every fragment of a run, when a round opens, is
// complete and closes, and which deltas each closed round folds.
//
// A [Machine] takes events with the time at which they happen and returns
// effects: folds to compute, drafts to ask the learner for, tips to adopt, bases
// to drop. It holds the headers of deltas and no values; package outer has the
// arithmetic. What it decides from clocks and peer lists may delay a round and never
// decides a bit of it: the chain of a fragment follows from the set of deltas
// alone.
//
// Files, each may use those above it:
//
//	effects                   what is to be done, and what happened
//	round                     what is known of one round
//	machine, fragment, chain  all fragments, one of them, and its closed rounds
//	own                       own deltas that are not final
//	peerlist                  learners that are known
//	clock                     how late headers are, and when a round must be over
//	deltas                    headers and payloads that are offered
//	revoke                    names that are kept out
//	learn                     what the learner has not published
//	account                   where work went
//	plan                      what suits the links and the speed of the learners
//	rotation                  who publishes in a round
//	fold                      what is folded next
//	close, table              when the open round closes, and what it waits for
//	publish                   drafts of own deltas
//	repair                    tips that turn out damaged
//	install                   go on from a snapshot or a ledger
//	view                      read a fragment
//
// # Words
//
//   - A learner that has enough steps proposes a round: its delta for the open round
//     begins the time in which the others publish theirs.
//   - A round closes when those sampled for it have published, or when grace is over. When
//     exactly, and what an open round waits for, is one table: closing, in table.go, with
//     awaiting below it. A [Reason] is one of its rows. Nothing else closes a round, and
//     [View.Why] walks it for people.
//   - A delta that comes later is folded into its round all the same, with every
//     round after it, until the round is final.
//   - Where more learners train than may publish in a round, they do so in rotation.
//   - Own deltas are those of this node's learner. They are in flight until a tip
//     folds them, and returned to the learner if their round becomes final without
//     them. What becomes of each is decided here alone; the learner is told what
//     changes with each tip, and has the vectors.
//
// The package has no clock, goroutine, random source or I/O.
package rounds
