// Package tune chooses how often a run merges and in which codec its deltas
// travel, by what links and cores can spend. It also says how far a budget of
// tokens goes.
// Its numbers were measured: optimizer/outer/DESIGN.md has the tables.
//
// It is pure: commands read flags, call [Choose] and [LengthOf], and print.
package tune
