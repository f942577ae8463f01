// Package optimizer turns gradients into parameters inside one learner: AdamW, Muon,
// clipping of the gradient's norm, and the learning rate over a run.
//
// Everything here is a pure function of its arguments on flat vectors: no
// clock, no files, no random source. Work is spread by tensor.Parallel in pieces
// of fixed size, so results do not depend on the number of threads.
package optimizer
