// Package external has a trainer.Trainer in a process of its own: any program that keeps to
// PROTOCOL.md, with any framework, on any accelerator.
//
//	frames     messages on the control connection
//	slab       the values that both processes map
//	session    the connection to one learner, from its hello to its end
//	process    the start, the end and the last words of a process that the node starts
//	attach     where a script comes that runs already
//	learner    the Trainer over them
//	evaluate   what values are worth, by the learner's word
//	check      whether a program is fit to be a learner
//
// One goroutine uses a Learner at a time. A process that dies, hangs or says what is no frame is
// lost, with what it stepped since the last flush: then every method says so until Restart. A script
// that attached is its user's: it is let go, and another may come.
package external
