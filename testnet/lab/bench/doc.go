// Package bench measures what a machine can do for a run: matrix products, training steps,
// codecs, the fold, the disk and the links between nodes. It compares a training step with
// another program's.
//
// Results are structs that marshal to one JSON object each, with units in the names; what
// was not measured is absent. Every figure is a median of repeated parts after a warm-up,
// with its spread. Only peaks are the best of many: other work on the machine can only
// lower them. Whole runs are measured by package sweep, in virtual time, and by package thin, over thin links.
// Ledgers of very many rounds are measured by package ledger. RESULTS.md holds what was measured with it.
package bench
