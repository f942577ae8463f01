// Package effect is what all machines of a gossip core share, and no more: the time of the
// present input, the effects that its caller executes, and the calls that await their answers.
// It decides nothing.
package effect
