// Package tune chooses how often a run merges and what its deltas travel in, by
// what links and cores have to spend, and says how far a budget of tokens goes.
// Its numbers were measured: optimizer/outer/DESIGN.md has the tables.
//
// It is pure: commands read flags, call [Choose] and [LengthOf], and print.
package tune
