// Package baseline has the baselines that atoll is compared with: data parallel
// training and DiLoCo, by the same trainer on the same data, between real processes. A
// world of package testnet starts them with --baseline.
//
// Files, each may use those above it:
//
//	account          where time goes
//	control          what members and coordinator say
//	ring             the ring all-reduce
//	frame            frames of a ring
//	registry         who makes rounds together
//	coordinator      the registry with a clock and a network
//	standin          what a member trains with
//	learner          kinds of a baseline
//	member, round, conn, snapshot  a member: its rounds, its ring, its state
//	status, process  a member as a process
//
// # Kinds
//
//	dp      gradients are averaged in every step: one learner with as many times the batch
//	diloco  every H inner steps, behind a barrier, the members' progress is averaged, and
//	        an outer Nesterov step taken with the genesis' Eta and Mu
//	local   dp with one member: one node with all the tokens
//
// Parameters, batches (by seed, member and step), schedule, clipping and budget are the
// same as in a run of atoll with the same genesis. What the members compute is package
// lockstep's, which sweeps in virtual time use as well.
//
// # Rounds
//
// The members of a view sum a vector, gradient or progress, by a ring all-reduce over
// streams of libp2p (ring.go, conn.go): bfloat16 on the wire, float32 sums. The vector
// goes in buckets of whole tensors, all on their way at once. In dp with overlap, a bucket
// leaves as soon as the backward pass has made its gradients, from the last layer on. A
// pace spreads the readiness over the step as on a slow machine. A last bucket of one
// value says how many members want the view to end after the round.
//
// # Elastic membership
//
// A coordinator decides who takes part (registry.go without clock and network, coordinator.go
// with them). It runs in the world's own process, and no chaos reaches it: where it would
// fail, so would the baseline. Members ask it for a view, a fixed set of members and the
// state that they begin with. When a member dies, is cut off or sends nothing for some
// seconds, the others break off the round and report what state they hold. They get a view
// without it and make the round again. A member that comes (back) connects to all others. The
// view ends after a round, and in the next one the member first takes a snapshot of the state
// (snapshot.go). Where members are cut off from each other, the largest group that is
// connected goes on.
//
// A state is named by its Label: the view and the number of its last round. A round needs
// the contributions of all members of its view. So members with equal labels hold equal
// bits, and no two members of a view are more than a round apart. (On machines of one
// kind: the arithmetic of a step may differ between kinds.) Nothing is kept on disk but
// the log of steps: when all members are dead, the run begins anew.
//
// # Bounds
//
// Every number from the network is checked against what is due: frames by the length of
// their bucket and hop, messages by limits in control.go, states by the model's size.
// Nobody is waited for without a deadline (member.go). What members send is summed as it
// is. A member that sends what is not a number ends the run, and one that lies spoils it,
// as in any data parallel training.
package baseline
