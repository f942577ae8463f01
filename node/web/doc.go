// Package web shows a run on a page: of one node, or of all nodes of a testnet.
//
// A Feed takes what the nodes say about once a second, makes one View of it for all
// viewers, and encodes it once. A Server hands out the embedded page, which renders
// the View and asks nobody else for anything. Nobody can change anything by it.
//
// Curves are drawn by uPlot 1.6.32 (MIT licence, in static/uplot), unchanged as its makers
// publish it. A report of a finished run is the same page with its files and the last View in it.
//
// On a loopback address everybody on this machine may look. On any other address
// everything is behind a token. What peers say of themselves is text and never markup.
//
// Files, each may use those above it:
//
//	feed              one view for all viewers
//	view, peers, say  what the page shows, of peers and in words
//	replay            moments of a run that is over
//	server            hand out the page
//	share             what a page has for people outside the run
//	report            the page as a file
package web
