package sim

import (
	"fmt"
	"strings"

	"atoll/testnet/fault"
	"atoll/testnet/nodelink"
	"atoll/testnet/shaping"
)

// linkExample is how the links of a testnet are written, and of a world.
const linkExample = "up=20mbit,down=100mbit,delay=40ms"

// ReadLink takes what links are like, in any order:
//
//	rate=RATE, up=RATE, down=RATE, delay=TIME, jitter=TIME, loss=SHARE
//	                         as package shaping has them, with commas between them
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
	l, err := parseLink(strings.ReplaceAll(word, ",,", ","))
	if err != nil {
		r.Fail(word, "%v", err)
	}
	return l
}

// parseLink reads a link as a testnet has it.
func parseLink(text string) (Link, error) {
	s, err := shaping.Parse(text)
	return shaped(s), err
}

// shaped is a link as a testnet has it. Its jitter makes a delay shorter as well as longer.
func shaped(s shaping.Link) Link {
	return Link{
		LatencyMs: max((s.Delay - s.Jitter).Milliseconds(), 0), JitterMs: 2 * s.Jitter.Milliseconds(),
		Loss: s.Loss, BytesMs: float64(s.Up) / 1000, DownMs: float64(s.Down) / 1000,
	}
}

// ParseLinks reads what the links of so many nodes are like, as --link of a testnet does.
func ParseLinks(texts []string, nodes int) ([]Link, error) {
	set, err := nodelink.Parse(texts, maxNodes)
	if err != nil {
		return nil, err
	}
	for _, l := range set {
		if n := l.Highest(); n >= nodes {
			return nil, fmt.Errorf("%s: there is no node %d; use 0 to %d", l.Text, n, nodes-1)
		}
	}
	links := make([]Link, nodes)
	for i := range links {
		links[i] = shaped(set.Of(i))
	}
	return links, nil
}
