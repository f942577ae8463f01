// Package preflight finds out whether a join link leads into its run from this machine, and how
// others will reach the machine there: before it joins, or while it is alone. What it found it
// says in words that name the remedy.
//
// Looking (Check) and judging are apart: Facts are what was seen, and Findings follows from
// them alone.
package preflight
