// Package external has a trainer.Trainer in a process of its own: any program that keeps to
// PROTOCOL.md, with any framework, on any accelerator.
//
//	frames     messages on the control connection
//	slab       the values that both processes map
//	session    the connection to one learner, from its hello to its end
//	process    the start, the end and the last words of a process that the node starts
//	attach     where a script that runs already comes to its node
//	learner    the Trainer over them
//	evaluate   what values are worth, by the learner's word
//	check      whether a program is fit to be a learner
//
// One goroutine uses a Learner at a time. A process that dies, hangs or sends something that is no
// frame is lost, with what it stepped since the last flush. Then every method says so until Restart.
// A script that attached is its user's: the node lets go of it, and another may come.
//
// Files, each may use those above it:
//
//	frames                      messages of the protocol
//	process_unix, process_windows  a line for the shell of the system
//	memory_linux, memory_other  files in memory
//	map_unix, map_windows       files that are mapped
//	aside                       values put aside during an evaluation
//	session                     the connection to one learner
//	attach                      a learner that runs already
//	package                     the Python package, and how it is started
//	slab                        the values that node and learner share
//	process                     a learner that the node starts
//	learner                     the trainer that the node sees
//	evaluate                    evaluations by a learner
//	check                       whether a learner keeps to the protocol
package external
