// Package top is the full screen of atoll top. It shows a node, or all the nodes of a testnet, in a
// terminal of any size: the loss of the global parameters, how far the run is, its peers, rounds and events.
//
// A Source asks nodes for their status. A History keeps what one status does not have: the curve, rates,
// which rounds have just closed. View draws a history; it depends on nothing else. Run joins the three
// in a terminal. What peers say of themselves is made harmless before anything keeps it, see clean.go.
//
// Files, each may use those above it:
//
//	clean        make what peers say harmless
//	source       ask nodes for their status
//	curve        the curve of the loss
//	history      what one status does not have
//	ink          colours
//	alarm        what is wrong, in one line
//	view, peers  the screen, and its table of peers
//	run          all of them in a terminal
package top
