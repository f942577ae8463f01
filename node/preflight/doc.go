// Package preflight finds out whether a join link leads into its run from this machine, and how
// others will reach the machine there: before it joins, or while it is alone. What it found it
// says in words that name the remedy.
//
// Looking (Check) and judging are apart: Facts are what was seen, and Findings follows from
// them alone.
//
// Files, each may use those above it:
//
//	facts    what was seen, and its findings
//	why      why a dial led nowhere
//	reach    how others reach this machine
//	packets  whether large ones pass
//	check    the check
package preflight
