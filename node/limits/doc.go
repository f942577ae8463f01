// Package limits says what a node may cost its owner: when it may work, and how
// much it may send and receive in a month. It is a pure function of times and counts, and
// looks at no clock; node/allowance adds up by it, and package node pauses the node.
package limits
