// Package finality certifies, by votes, which deltas the rounds of a run have for good.
//
// Every so many rounds the voters of a run agree on a Value: for each fragment a round, and the digest
// of its chain up to there. Signatures of more than two thirds of them make a Certificate. Heights
// count certificates, from 0. A certificate lists the voters of the next height, so who has the first one can
// check all others, without the run's history.
//
// # The rule
//
// A Voter follows the algorithm of Buchman, Kwon and Milosevic, "The latest gossip on BFT consensus"
// (arXiv:1807.04938, 2018), known as Tendermint. A height has views, from 0, each with a proposer by a hash. In a view
// voters prevote and then precommit. Who sees prevotes of more than two thirds for a value locks it and
// precommits it. From then on it prevotes for nothing else, unless a proposer shows that more than two
// thirds prevoted for another value in the view of the lock or a later one. Precommits of more than two thirds in one view
// certify. Views last longer and longer, so that one is long enough.
//
// A node votes for a value if its own chain has the same digest at the same round. It proposes the newest round
// that is final by the windows of its run, so a certificate never asks a node to fold again.
//
// # Driving a Voter
//
// Who drives a Voter gives it time, the votes that came and verified, and certificates of others. It executes the effects
// in order, and makes each Save durable before it publishes what follows: a voter that forgets what it
// signed counts as a liar. If the disk is lost, Config.From leaves out the height under way.
//
// Votes may be lost and come in any order. A Voter repeats its last ones. Where what carries them drops equal bytes that
// come again, as gossip does, a voter asks others for the votes that it lacks (Votes). What is certified is not repeated. A node that
// hears of a higher height fetches the certificates that it lacks, and gives them to Learn. Package gossip does so. A Gate
// bounds the votes that pass a node.
//
// A History makes the values of the own chain out of final rounds. Every node must feed it the same
// deltas of a round: those in the round's chain digest. A node that took tips whole feeds it the rounds that led to them as
// it learns of their authors.
//
// # What is promised
//
// Of one height there are no two certificates with different values while less than a third of its voters lie. A voter
// that signs two votes of one phase and view is told of in a DoubleVote. Its votes count no more at a node
// that has seen both, except in what others prove with them.
//
// A height ends once more than two thirds of its voters are honest, connected, and show the same chain, and a third of
// all know that chain from before the newest certificate. The others may have taken tips of later rounds: votes of that
// third tell them that their chains go through it.
//
// # What is not promised
//
// Nobody certified the voters of height 0: they are those whose deltas were folded first, by the certificate
// itself. Two groups that never met can each have one. So a node takes its first certificates only if its own
// chain bears one of them out. Where it cannot tell, more than two thirds of the live members whose deltas it folded have
// to say that theirs does. Those could lie, as those could whose tips it took. All later ones follow from the first.
//
// Voters have one vote each, whatever they contribute. Who holds an invite for many nodes has many votes, up
// to the number of uses that its owner signed. Votes say nothing about the quality of deltas.
//
// The first certificate needs more than two thirds of those who trained in the first rounds of the run, with the
// memory of these rounds. One who took tips whole meanwhile, or lost its disk, has it no more. A run may thus stay without
// any.
//
// A node that comes back with a disk from a backup may sign a second time where it signed since. Its votes then
// count no more at nodes that have both.
//
// Nothing waits for a certificate. If a third of the voters is gone for good, the table of voters never
// changes again and no height ends any more: the run goes on by the rules of forks and windows alone.
package finality
