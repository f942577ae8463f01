// Package mutants plants bugs in the cores, one at a time, and demands that the simulator's checkers find each.
//
// These are what a protocol of this kind gets wrong, whatever its checkers look at:
//
//  1. unsorted fold: deltas of a round are folded in the order of arrival, not by peer id
//  2. lost late delta: a delta that comes after its round was closed is held but never folded
//  3. double count on return: a delta that becomes final unfolded is counted as unpublished again and also kept in own
//  4. double count on restart: after a crash the parameters carry published progress a second time
//  5. unbounded queue: what is kept for others has no limit
//  6. wait on a peer: a learner may not step while a peer is behind
//  7. stale tip adopted: an older tip is taken over a newer one
//  8. per-fragment fork choice: of two chains each fragment goes its own way
//  9. clock used in fold: local time decides bits
//  10. share cap skipped: one learner's weight is not limited where admission is open
//  11. equivocation proof ignored: an equivocator's two deltas are both folded
//  12. payload unchecked: bytes that do not hash to what the header signed are taken
//  13. signed twice: the durable mark is not honoured after a restart, a round is signed again
//  14. end ignored: deltas past the last round of the budget are still made and folded
//  15. return forgotten: a delta that becomes final unfolded is dropped, its tokens are counted nowhere
//  16. unbounded round: what a round holds of deltas that others signed has no limit
//
// These five were chosen, from what the ones above hardly touch, without looking at the checkers:
//
//  17. repair by the rules of gossip: what a repair brings is judged as if gossip did, so that deltas which others hold
//     in their sets (of an excluded author, or far ahead) are not taken
//  18. lost work put back: own deltas folded on a chain that lost go back to the parameters and count as in flight, where
//     they are to be discarded
//  19. forgotten while a snapshot travelled: one that is put in place takes away the deltas of later rounds, too
//  20. left too early: a leaver goes when its last delta is announced, whether anybody has taken it or not
//  21. late delta lost at a restart: one that was stored and not yet folded when the node stopped is held and never folded
//  22. first come in a full round: what comes to a full round overflows, whatever its priority
//  23. revoked from the start: what a revoked author made before is out as well, where it is not final
//  24. words not told: who joins hears of no revocation that is older than its snapshot's history
//
// These four are of guests, chosen before their trial was written:
//
//  25. guests weigh what they claim: there is no bound on what they weigh together
//  26. guests end a run: their tokens count for the budget
//  27. guests close rounds: their deltas propose and close rounds and are parked as those of members are
//  28. guests are believed: one that has folded a delta counts where chains differ, and gives snapshots
//
// This one is of invites that have leaked:
//
//  29. each key has a rate of its own: those who came by one invite may say as much as there are keys
//
// This one is of members that lie:
//
//  30. copies count as work: a delta that is a copy of another weighs beside it
//
// This one is of the way in:
//
//  31. second chain: a joiner that gets nothing of a snapshot begins with genesis, whoever it hears
package mutants
