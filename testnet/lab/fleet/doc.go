// Package fleet simulates training on up to millions of chips that fail: how much of their time
// makes progress, under systems that stop for a failure, shrink around it, or are decoupled.
//
// Chips are in learner units (data parallelism has one unit of all chips). A unit steps. A failure in
// a step costs the unit a pause, and a slice of its chips until that is repaired. Failures that come
// in a pause lengthen it no more. Nothing is drawn in a pause and between two events, so a day of
// millions of chips takes milliseconds.
//
// # Calibration
//
// The pauses are not measured. They are fitted to the goodput that was published for Decoupled DiLoCo
// (arXiv 2604.21428, Google DeepMind, 2026), at 150 thousand to 2.4 million chips of which each fails
// once a year: a step of 10 s that a failure strikes takes 86 s more where all restart, 26 s more
// where a unit shrinks and grows again. The seconds of the paper's own recovery are not known.
// TestPublishedGoodput compares all cells.
//
// # What atoll adds
//
// The system atoll has the units of decoupled. No syncer stands between them, so no link of one machine
// carries the bytes of all, and a partition stops nobody. Bytes and time of a processor follow from what
// was measured of this program (see traffic.go).
package fleet
