// Package external has a trainer.Trainer in a process of its own: any program that keeps to
// PROTOCOL.md, with any framework, on any accelerator.
//
//	frames     messages on the control connection
//	slab       the values that both processes map
//	process    the start, the end and the last words of the process
//	learner    the Trainer over them
//
// One goroutine uses a Learner at a time. A process that dies, hangs or says what is no frame is
// lost, with what it stepped since the last flush: then every method says so until Restart.
package external
