package shaping

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"atoll/node/limits"
)

// Link is what the link of a node is like.
type Link struct {
	Up, Down int64         // bytes/s over all connections of the node; 0 = as fast as it goes
	Delay    time.Duration // of what leaves, one way
	Jitter   time.Duration // the delay is up to so much longer or shorter
	Loss     float64       // share of the packets that leave
}

// Limits on a Link.
const (
	MaxDelay = 10 * time.Second // handshakes time out beyond it
	MaxLoss  = 0.2              // beyond it a TCP connection carries next to nothing
)

// MaxBytes is the largest rate in bytes/s.
const MaxBytes = int64(limits.MaxRate / 8)

const example = "rate=20mbit,delay=40ms or up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%"

// Parse reads a link; "" is one without limits.
func Parse(text string) (Link, error) {
	if text == "" {
		return Link{}, nil
	}
	return Link{}.Change(text)
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Link) UnmarshalText(text []byte) (err error) {
	*l, err = Parse(string(text))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Change is the link with other traits in the place of its own; what is not named stays.
func (l Link) Change(text string) (Link, error) {
	for trait := range strings.SplitSeq(text, ",") {
		if err := l.set(strings.TrimSpace(trait)); err != nil {
			return Link{}, fmt.Errorf("link %q: %w; use something like %s", text, err, example)
		}
	}
	if err := l.Validate(); err != nil {
		return Link{}, fmt.Errorf("link %q: %w", text, err)
	}
	return l, nil
}

// set reads one trait.
func (l *Link) set(trait string) (err error) {
	key, value, _ := strings.Cut(trait, "=")
	switch key {
	case "rate":
		l.Up, err = parseBytes(value)
		l.Down = l.Up
	case "up":
		l.Up, err = parseBytes(value)
	case "down":
		l.Down, err = parseBytes(value)
	case "delay":
		l.Delay, err = time.ParseDuration(value)
	case "jitter":
		l.Jitter, err = time.ParseDuration(value)
	case "loss":
		l.Loss, err = parseShare(value)
	default:
		err = fmt.Errorf("%q is no trait of a link", trait)
	}
	return err
}

// none is a rate without a limit.
const none = "none"

func parseBytes(text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	bits, err := limits.ParseRate(text)
	return max(1, int64(math.Round(bits/8))), err
}

func parseShare(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no share of the packets; write it like 0.1%%", text)
	}
	return x / 100, nil
}

// Validate names the first trait that no link has.
func (l Link) Validate() error {
	switch {
	case l.Up < 0 || l.Up > MaxBytes:
		return fmt.Errorf("up is %d bytes/s: use 1 to %d, or 0 for no limit", l.Up, MaxBytes)
	case l.Down < 0 || l.Down > MaxBytes:
		return fmt.Errorf("down is %d bytes/s: use 1 to %d, or 0 for no limit", l.Down, MaxBytes)
	case l.Delay < 0 || l.Delay > MaxDelay:
		return fmt.Errorf("delay is %v: use 0s to %v", l.Delay, MaxDelay)
	case l.Jitter < 0 || l.Jitter > l.Delay:
		return fmt.Errorf("jitter is %v: use at most the delay, %v", l.Jitter, l.Delay)
	case !(l.Loss >= 0 && l.Loss <= MaxLoss):
		return fmt.Errorf("loss is %s: use 0%% to %s", share(l.Loss), share(MaxLoss))
	}
	return nil
}

// String is the link as Parse reads it. One without limits says so.
func (l Link) String() string {
	var traits []string
	add := func(is bool, key, value string) {
		if is {
			traits = append(traits, key+"="+value)
		}
	}
	add(l.Up > 0 && l.Up == l.Down, "rate", rate(l.Up))
	add(l.Up > 0 && l.Up != l.Down, "up", rate(l.Up))
	add(l.Down > 0 && l.Up != l.Down, "down", rate(l.Down))
	add(l.Delay > 0, "delay", l.Delay.String())
	add(l.Jitter > 0, "jitter", l.Jitter.String())
	add(l.Loss > 0, "loss", share(l.Loss))
	add(len(traits) == 0, "rate", none)
	return strings.Join(traits, ",")
}

func rate(bytesPerSecond int64) string { return limits.RateText(8 * float64(bytesPerSecond)) }

// digits is how many a share is written with: what follows comes of binary fractions.
const digits = 12

func share(x float64) string { return strconv.FormatFloat(100*x, 'g', digits, 64) + "%" }
