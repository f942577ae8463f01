// Package corpus is where tokens come from: it reads a file or a folder into
// one stream of bytes, keeps the last tenth of it away from training, and
// draws batches and evaluation windows from the two parts.
//
// A token is a byte. Documents follow each other in one stream, and a row of a
// batch is any stretch of it, so a row may begin in one document and end in
// the next. What a learner trains on at a step is a pure function of the run's
// seed, the learner and the step, so no learner has to tell another what it
// has read, and none can be disturbed by another's coming or going.
package corpus
