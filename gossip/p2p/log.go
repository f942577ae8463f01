package p2p

import (
	"log/slog"

	"github.com/libp2p/go-libp2p/gologshim"
)

// LibraryLog sends the log of libp2p to handler; otherwise its errors go to
// stderr. It holds for the process, and has to be called before the first New.
// What concerns one host, gossip included, goes to that host's Config.Log.
func LibraryLog(handler slog.Handler) { gologshim.SetDefaultHandler(handler) }
