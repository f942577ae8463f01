// Package thin shows what thin links do to runs of real processes, and that runs hold what was promised of them.
//
// A row is a question, such as what links of 20 Mbit/s take from a run. It has a few worlds, each a run of
// `atoll testnet`, one of them the reference of the others. They are played in turn, several times, so that what else the
// machine does falls on all of them. From the outcomes of one turn come figures; the median over the turns is held against
// the row's target.
//
// Each outcome goes to a file as it comes. What is in the file is not played again, so a row can be stopped and go on later.
//
// The cells are the same worlds at what `atoll new --bandwidth` chooses, in the simulator: thirty of them take a few minutes.
//
// Package cli beside it does all of it.
package thin
