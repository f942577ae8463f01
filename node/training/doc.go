// Package training is the thread that steps, and what is asked of its learner between steps: drafts, tips and evaluations. It
// saves the inner optimizer and keeps the account of its time. It knows no peer, no round and no folder: who runs it says when it
// may step, and is told.
//
// Files, each may use those above it:
//
//	saver       save the inner optimizer beside the steps
//	globals     global parameters, kept for an evaluation
//	background  what is asked of a trainer in another process
//	thread      the thread that steps
//	evaluate    evaluations, in parts
package training
