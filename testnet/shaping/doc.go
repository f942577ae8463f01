// Package shaping says in words what the link of a node is like: how much it carries, how far it
// is, what it loses. A testnet makes such links of connections on one machine (Shaper), with TCP's
// congestion window (window.go) and retransmissions (sender.go). The simulator has them as numbers.
//
// A link is a list of traits with commas between them, such as
// up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%:
//
//	rate=RATE     both ways, over all connections of the node; none = as fast as it goes
//	up=RATE       what leaves
//	down=RATE     what comes
//	delay=TIME    one way, of what leaves; the way back has the delay of the other end
//	jitter=TIME   the delay is up to so much longer or shorter; at most the delay
//	loss=SHARE    of the packets that leave
//
// A trait that is written later takes the place of an earlier one.
//
// Files, each may use those above it:
//
//	link          what a link is like
//	frame         what two ends say
//	window        the congestion window
//	sender        what one end has sent
//	shaper, conn  links, and connections over them
package shaping
