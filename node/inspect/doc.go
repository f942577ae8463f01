// Package inspect says what a node's folder holds: the newest model, and the
// account of every delta and token. It says whether a replay comes to the same
// digests, and whether a node can run there. It asks a node that runs on the
// folder and otherwise reads the disk.
//
// Files, each may use those above it:
//
//	inspect                    the newest model, and the replay of a ledger
//	progress                   tell how far an answer is
//	members                    who was admitted
//	tokenizer                  the tokenizer of a run
//	ledger                     the account of every delta and token
//	moments                    how far the run was when rounds closed
//	bench                      what this machine does
//	verify                     whether a replay comes to the same digests
//	learner, capacity, doctor  whether a node can run here
package inspect
