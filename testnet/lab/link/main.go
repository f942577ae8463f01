// Package link loads shaped links with bulk in both directions at once, and
// measures what of it arrives, how long heartbeats take meanwhile, and what the nodes
// take their uplinks for.
//
// Every node asks every other one for payloads without a pause, so each uplink has
// more to send than it carries. Heartbeats of 400 bytes are gossip, twice a second from
// each node.
package link

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"atoll/testnet/shaping"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . link [--link LINK]... [--nodes 2,4] [--for 10s] [--payload 190000] [--json]
      LINK is like rate=20mbit,delay=40ms,jitter=10ms,loss=0.1%; without it a few that are common
`

// common are the links that are measured where none is named.
var common = links{
	"rate=20mbit,delay=40ms", "rate=5mbit,delay=40ms", "rate=100mbit,delay=40ms", "rate=20mbit,delay=40ms,jitter=10ms,loss=0.1%",
}

// Usage is what there is to type.
func Usage() string { return usage }

// links are the words of links.
type links []string

// String implements flag.Value.
func (l *links) String() string { return strings.Join(*l, " ") }

// Set implements flag.Value.
func (l *links) Set(words string) error {
	*l = append(*l, words)
	_, err := shaping.Parse(words)
	return err
}

// plan is what is measured.
type plan struct {
	links   links
	nodes   []int
	span    time.Duration
	payload int
	json    bool
}

func parse(args []string) (p plan, err error) {
	f := flag.NewFlagSet("link", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Var(&p.links, "link", "link of every node")
	nodes := f.String("nodes", "2,4", "numbers of nodes")
	f.DurationVar(&p.span, "for", 10*time.Second, "how long each is measured")
	f.IntVar(&p.payload, "payload", 190_000, "bytes of a payload")
	f.BoolVar(&p.json, "json", false, "answer with a JSON object on each line")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if len(p.links) == 0 {
		p.links = common
	}
	for _, word := range strings.Split(*nodes, ",") {
		var n int
		if _, err := fmt.Sscan(word, &n); err != nil || n < 2 || n > mostNodes {
			return p, fmt.Errorf("--nodes %s: %q is not a number from 2 to %d", *nodes, word, mostNodes)
		}
		p.nodes = append(p.nodes, n)
	}
	if p.payload < 1 || p.payload > mostPayload {
		return p, fmt.Errorf("--payload %d: use 1 to %d bytes", p.payload, mostPayload)
	}
	return p, nil
}

// Main does what was typed.
func Main(ctx context.Context, args []string, out, _ io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !p.json {
		fmt.Fprintln(table, "LINK\tNODES\tBULK\tSHOWN\tFULL\tBEATS\tMEDIAN\t99 %\tWORST")
	}
	for _, words := range p.links {
		for _, n := range p.nodes {
			r, err := measure(ctx, words, n, p)
			if err != nil {
				return fmt.Errorf("%s, %d nodes: %w", words, n, err)
			}
			if err := r.print(out, table, p.json); err != nil {
				return err
			}
		}
	}
	return table.Flush()
}

// result is what was measured of one link.
type result struct {
	Link        string  `json:"link"`
	Nodes       int     `json:"nodes"`
	BulkShare   float64 `json:"bulk_share,omitempty"`   // of what all uplinks carry
	UploadShare float64 `json:"upload_share,omitempty"` // what nodes take their uplinks for, the mean of those that know
	Full        int     `json:"full,omitempty"`         // nodes that know: they saw their uplink full
	BulkMBPerS  float64 `json:"bulk_mb_per_s"`          // of all nodes
	Heartbeats  int     `json:"heartbeats"`
	MedianS     float64 `json:"heartbeat_median_s"`
	P99S        float64 `json:"heartbeat_p99_s"`
	WorstS      float64 `json:"heartbeat_worst_s"`
}

func (r result) print(out io.Writer, table *tabwriter.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	_, err := fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%d\t%d\t%.3f s\t%.3f s\t%.3f s\n",
		r.Link, r.Nodes, r.BulkShare, r.UploadShare, r.Full, r.Heartbeats, r.MedianS, r.P99S, r.WorstS)
	return err
}
