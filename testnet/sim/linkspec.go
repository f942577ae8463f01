package sim

import (
	"fmt"
	"slices"
	"strings"

	"atoll/gossip/shape"
	"atoll/testnet/fault"
)

// linkExample is how the links of a testnet are written, and of a world.
const linkExample = "up=20mbit,down=100mbit,delay=40ms"

// ReadLink takes what links are like, in any order:
//
//	rate=RATE, up=RATE, down=RATE, delay=TIME, jitter=TIME, loss=SHARE
//	                         as package shape has them, with commas between them
//	latency TIME, jitter TIME, loss SHARE, duplicate SHARE, uplink RATE, downlink RATE
func ReadLink(r *fault.Reader) (l Link) {
	for first := true; first || r.More(); first = false {
		switch word := r.Next("a trait of links"); word {
		case "latency":
			l.LatencyMs = ReadMs(r, "the latency", 1)
		case "jitter":
			l.JitterMs = ReadMs(r, "the jitter", 0)
		case "loss":
			l.Loss = r.Percent("the loss")
		case "duplicate":
			l.Duplicate = r.Percent("the share of duplicates")
		case "uplink":
			l.BytesMs = r.Rate("the uplink")
		case "downlink":
			l.DownMs = r.Rate("the downlink")
		default:
			l = readShape(r, word).over(l)
		}
	}
	return l
}

// readShape takes a link as a testnet has it. More words may follow as long as they are
// traits.
func readShape(r *fault.Reader, word string) Link {
	if !strings.Contains(word, "=") {
		r.Fail(word, "links have no such trait; use latency, jitter, loss, duplicate, uplink or downlink, or write them like %s", linkExample)
		return Link{}
	}
	for r.More() && strings.Contains(r.Words[0], "=") {
		word += "," + r.Next("a trait of links")
	}
	l, err := ParseLink(strings.ReplaceAll(word, ",,", ","))
	if err != nil {
		r.Fail(word, "%v", err)
	}
	return l
}

// ParseLink reads a link as a testnet has it. Its jitter makes a delay shorter as well as
// longer.
func ParseLink(text string) (Link, error) {
	s, err := shape.Parse(text)
	return Link{
		LatencyMs: max((s.Delay - s.Jitter).Milliseconds(), 0), JitterMs: 2 * s.Jitter.Milliseconds(),
		Loss: s.Loss, BytesMs: float64(s.Up) / 1000, DownMs: float64(s.Down) / 1000,
	}, err
}

// ParseLinks reads what the links of so many nodes are like: each text is LINK, or NODES:LINK
// for these nodes alone. The last that names a node wins.
func ParseLinks(texts []string, nodes int) ([]Link, error) {
	links := make([]Link, nodes)
	for _, text := range texts {
		names, link, named := strings.Cut(text, ":")
		if !named {
			names, link = "all", text
		}
		l, err := ParseLink(link)
		if err != nil {
			return nil, err
		}
		r := &fault.Reader{File: text, Words: strings.Fields(names), MaxNodes: maxNodes}
		of := r.NodesOf(nodes)
		if r.End(); r.Err != nil {
			return nil, r.Err
		}
		if len(of) > 0 && slices.Max(of) >= nodes {
			return nil, fmt.Errorf("%s: there is no node %d; use 0 to %d", text, slices.Max(of), nodes-1)
		}
		for _, i := range of {
			links[i] = l
		}
	}
	return links, nil
}
