// Package bulk carries long responses so that what else goes over the same connection
// does not wait behind them. It knows streams and bytes, and neither hosts nor peers.
//
// A Link is the way to one peer. Its pacer (pacer.go) bounds what is on its way there by
// the delay that the peer's clock shows (oneway.go), which each acknowledgement carries.
// A Transfer (transfer.go) sends a response, and Receive (receiver.go) takes it. Links
// share the node's Uplink, which finds out from them what it carries (uplink.go,
// train.go). A Limiter (limiter.go) is the cap that an owner has set.
//
// Files, each may use those above it:
//
//	oneway         delay in one direction, by the clock of the receiver
//	pacer          how much may be on its way to a peer
//	limiter        the cap that an owner has set
//	train, uplink  segments sent at once, and what they tell of the node's link
//	link           the way to one peer
//	receiver       take a response, and acknowledge it
//	transfer       send a response
package bulk
