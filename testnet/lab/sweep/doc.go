// Package sweep compares ways to train one model by many learners, and settings
// of each, in one process and in virtual time. Five ways to train share model, initial
// parameters, batches, schedule, budget of tokens and evaluation:
//
//   - atoll: the protocol itself. Nodes of the simulator (testnet/sim) run the
//     cores that real nodes run, and step the built-in trainer on real text; each
//     has a speed, links have latency and bandwidth, faults come as scripted.
//   - dp: data parallelism. Each step is one step along the mean of all
//     learners' gradients. Learners may join it.
//   - diloco: all learners take H steps, wait for each other, and make one outer
//     step of the whole model.
//   - local: one learner takes all their batches one after the other.
//   - aggregated: learners wait for each other as in diloco, and draft and fold as in
//     atoll. Some may answer in turns, and groups of deltas may be merged first.
//
// A step of a learner of speed 1 takes one second of virtual time unless a setting
// says otherwise, so times of faults in seconds are steps.
//
// A Setting is one way to train, and a Trial what became of it with one seed. A
// plan is a text that lists settings and seeds; Play runs what of it is not yet
// in a file of trials, one JSON line each. Tables and plots are made from such
// files. Package cli beside it does all of it.
package sweep
