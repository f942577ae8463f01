// Package corpus is where tokens come from. It reads a file or a folder into
// one stream of bytes and keeps the last tenth of it away from training. It
// draws batches and evaluation windows from the two parts.
//
// A token is a byte. Documents follow each other in one stream. A row of a
// batch is any stretch of it, so a row may begin in one document and end in
// the next. The run's seed, the learner and the step alone decide what a learner
// trains on at a step. So no learner has to tell another what it has read, and
// nobody who comes or goes disturbs another.
package corpus
