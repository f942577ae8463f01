package main

import (
	"fmt"
	"net/http"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/metrics"
	"atoll/node/status"
	"atoll/node/web"
)

// webFlag is whether there is a page, for commands that run nodes.
type webFlag struct {
	Web string `help:"Show the run on a page at this address, such as 127.0.0.1:7070. Everybody on this machine can then look, and get the join link. An address that other machines reach is behind a token, which the printed address contains. The page is not encrypted: to look from far away, better use ssh -L 7070:127.0.0.1:7070. Prometheus finds metrics at /metrics, with the token as its bearer token, and Grafana a dashboard at /grafana.json." placeholder:"HOST:PORT"`
}

// page is the page of a command; nil is none.
type page struct {
	feed   *web.Feed
	server *web.Server
	out    *cli.Console
}

// checkWeb refuses an address at which there can be no page.
func (f webFlag) checkWeb() error {
	if f.Web == "" {
		return nil
	}
	if err := web.CheckAddr(f.Web); err != nil {
		return cli.BadUsage("--web: %v", err)
	}
	return nil
}

// open starts the page and says where it is; nil without the flag.
func (f webFlag) open(out *cli.Console) (*page, error) {
	if f.Web == "" {
		return nil, nil
	}
	if err := f.checkWeb(); err != nil {
		return nil, err
	}
	feed := web.NewFeed()
	server, err := web.Serve(f.Web, feed, map[string]http.Handler{
		"/metrics": metrics.Handler(feed.Statuses), "/grafana.json": metrics.Dashboard(),
	})
	if err != nil {
		return nil, fmt.Errorf("--web: %w", err)
	}
	out.Say("watch the run at %s", server.URL())
	if server.Guarded() {
		out.Say("this address lets anybody look at the run and get its join link: give it to people you trust alone")
	}
	return &page{feed, server, out}, nil
}

// also hands a status to the page and then to next.
func (p *page) also(next func(status.Snapshot)) func(status.Snapshot) {
	return func(s status.Snapshot) {
		p.offer(s)
		next(s)
	}
}

// offer hands the status of the one node to the page.
func (p *page) offer(s status.Snapshot) {
	if p != nil {
		p.feed.Offer(web.World{Nodes: []web.Node{{Status: s}}})
	}
}

// watch is what a testnet tells of its nodes; nil where there is no page.
func (p *page) watch() func(web.World) {
	if p == nil {
		return nil
	}
	return p.feed.Offer
}

// close ends the page.
func (p *page) close() {
	if p == nil {
		return
	}
	if err := p.server.Close(); err != nil {
		p.out.Say("end the page: %v", err)
	}
}
