package testnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits on a chaos spec, which people write by hand.
const (
	maxChaosLength = 1 << 16 // bytes
	maxFactor      = 1e6     // times slower
	leastEvery     = time.Second
)

// usualEvery is the mean time between two events of random chaos that does not
// say: long enough for what one broke to matter before the next.
const usualEvery = 10 * time.Second

// ParseChaos reads a spec: comma-separated events, each VERB TARGET @WHEN, WHEN
// a time since the start (40s) or a share of the token budget (33%):
//
//	kill 1 @20s, start 1 @30s, join @33%, leave 2 @60%, pause 0 @10s,
//	resume 0 @20s, slow 3 x4 @0s, partition 0,1|2,3 @40s..80s,
//	kill any every 60s down 10s, partition any every 90s down 15s,
//	random every 10s, loss 2 1% @0s, corrupt 1 @50%, byzantine signflip 1 @0s
//
// TARGET is a node's number or any. The error names the event.
func ParseChaos(spec string) (Chaos, error) {
	if len(spec) > maxChaosLength {
		return nil, fmt.Errorf("chaos spec of %d bytes: use at most %d", len(spec), maxChaosLength)
	}
	var c Chaos
	for _, text := range splitEvents(spec) {
		e, err := parseEvent(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("chaos %q: %w", text, err)
		}
		c = append(c, e)
	}
	return c, nil
}

// splitEvents splits at commas; a part that does not begin with a letter goes
// on with the event before, because a partition has commas of its own.
func splitEvents(spec string) []string {
	if strings.TrimSpace(spec) == "" {
		return nil
	}
	var events []string
	for _, part := range strings.Split(spec, ",") {
		trimmed := strings.TrimSpace(part)
		begins := trimmed == "" || trimmed[0] < '0' || trimmed[0] > '9'
		if begins || len(events) == 0 {
			events = append(events, trimmed)
		} else {
			events[len(events)-1] += "," + trimmed
		}
	}
	return events
}

func parseEvent(words []string) (Event, error) {
	if len(words) == 0 {
		return Event{}, fmt.Errorf("the event is empty: write VERB TARGET @WHEN, such as kill 1 @20s")
	}
	e := Event{Verb: Verb(words[0])}
	read, known := argumentsOf[e.Verb]
	if !known {
		return e, fmt.Errorf("unknown verb %q: use one of %s", words[0], strings.Join(worksHere, ", "))
	}
	args, when := splitWhen(words[1:])
	if len(args) != read.count {
		return e, fmt.Errorf("%d words between the verb and WHEN: write %s", len(args), read.usage)
	}
	if err := read.parse(&e, args); err != nil {
		return e, fmt.Errorf("%w: write %s", err, read.usage)
	}
	return e, parseSchedule(&e, when)
}

// argumentsOf says what stands between a verb and its WHEN.
var argumentsOf = map[Verb]struct {
	count int
	usage string
	parse func(e *Event, args []string) error
}{
	Join:      {0, "join @33%", func(*Event, []string) error { return nil }},
	Leave:     {1, "leave 2 @60%", parseNode},
	Kill:      {1, "kill 1 @20s, or kill any every 60s down 10s", parseNode},
	Start:     {1, "start 1 @30s", parseNode},
	Pause:     {1, "pause 0 @10s, or pause any every 45s down 20s", parseNode},
	Resume:    {1, "resume 0 @20s", parseNode},
	Corrupt:   {1, "corrupt 1 @50%", parseNode},
	Slow:      {2, "slow 3 x4 @0s, or slow any x4 every 45s down 20s", parseSlow},
	Loss:      {2, "loss 2 1% @0s", parseLoss},
	Byzantine: {2, "byzantine signflip 1 @0s", parseByzantine},
	Partition: {1, "partition 0,1|2,3 @40s..80s, or partition any every 90s down 15s", parsePartition},
	Random:    {0, "random, or random every 10s", func(*Event, []string) error { return nil }},
}

// splitWhen cuts before the first word that begins a schedule.
func splitWhen(words []string) (args, when []string) {
	for i, w := range words {
		if strings.HasPrefix(w, "@") || w == "every" {
			return words[:i], words[i:]
		}
	}
	return words, nil
}

// ratedVerbs are those that may happen again and again, each time for a while.
var ratedVerbs = []Verb{Kill, Pause, Slow, Partition}

func parseSchedule(e *Event, words []string) error {
	switch {
	case e.Verb == Random:
		return parseRandom(e, words)
	case len(words) == 1:
		return parseAt(e, strings.TrimPrefix(words[0], "@"))
	case len(words) == 4 && words[0] == "every" && words[2] == "down" && slices.Contains(ratedVerbs, e.Verb):
		return parseRate(e, words[1], words[3])
	case len(words) == 0:
		return fmt.Errorf("it does not say when: add @20s or @33%%")
	}
	return fmt.Errorf("cannot read %q: write %s", strings.Join(words, " "), argumentsOf[e.Verb].usage)
}

func parseRandom(e *Event, words []string) error {
	switch {
	case len(words) == 0:
		e.Every = usualEvery
		return nil
	case len(words) == 2 && words[0] == "every":
		return parseEvery(e, words[1])
	}
	return fmt.Errorf("cannot read %q: write %s", strings.Join(words, " "), argumentsOf[Random].usage)
}

func parseAt(e *Event, text string) (err error) {
	from, until, ranged := strings.Cut(text, "..")
	if ranged != (e.Verb == Partition) {
		return fmt.Errorf("only partition has a range of time, and it needs one: %s", argumentsOf[e.Verb].usage)
	}
	if e.At, err = parseWhen(from); err != nil || !ranged {
		return err
	}
	w, err := parseWhen(until)
	e.Until = &w
	return err
}

func parseWhen(text string) (When, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		p, err := parseNumber(percent, 0, 100)
		return When{ByShare: true, Percent: p}, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return When{}, fmt.Errorf("WHEN is %q: use a time such as 40s or a share of the tokens such as 33%%", text)
	}
	return When{After: d}, nil
}

func parseEvery(e *Event, every string) (err error) {
	if e.Every, err = time.ParseDuration(every); err != nil || e.Every < leastEvery {
		return fmt.Errorf("every %q: use a time such as 60s, at least %v", every, leastEvery)
	}
	return nil
}

func parseRate(e *Event, every, down string) (err error) {
	if err := parseEvery(e, every); err != nil {
		return err
	}
	if e.Down, err = time.ParseDuration(down); err != nil || e.Down < 0 || e.Down >= e.Every {
		return fmt.Errorf("down %q: use a time shorter than every %v", down, e.Every)
	}
	return nil
}

func parseNode(e *Event, args []string) (err error) {
	if args[0] == "any" {
		e.Node = Any
		return nil
	}
	e.Node, err = parseNodeNumber(args[0])
	return err
}

func parseNodeNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("node is %q, which is not a node's number", text)
	}
	return int(n), nil
}

func parseSlow(e *Event, args []string) (err error) {
	factor, ok := strings.CutPrefix(args[1], "x")
	if !ok {
		return fmt.Errorf("factor is %q, which does not begin with x", args[1])
	}
	if e.Factor, err = parseNumber(factor, 1, maxFactor); err != nil {
		return err
	}
	return parseNode(e, args[:1])
}

func parseLoss(e *Event, args []string) (err error) {
	percent, ok := strings.CutSuffix(args[1], "%")
	if !ok {
		return fmt.Errorf("loss is %q, which does not end in %%", args[1])
	}
	if e.Percent, err = parseNumber(percent, 0, 100); err != nil {
		return err
	}
	return parseNode(e, args[:1])
}

func parseByzantine(e *Event, args []string) error {
	e.Attack = args[0]
	for _, r := range e.Attack {
		if r < 'a' || r > 'z' {
			return fmt.Errorf("attack is %q, which is not a word of small letters", e.Attack)
		}
	}
	return parseNode(e, args[1:])
}

func parsePartition(e *Event, args []string) error {
	if args[0] == "any" {
		e.Node = Any
		return nil
	}
	seen := map[int]bool{}
	for _, side := range strings.Split(args[0], "|") {
		var group []int
		for _, text := range strings.Split(side, ",") {
			n, err := parseNodeNumber(text)
			if err != nil {
				return err
			}
			if seen[n] {
				return fmt.Errorf("node %d is named twice", n)
			}
			seen[n] = true
			group = append(group, n)
		}
		e.Groups = append(e.Groups, group)
	}
	if len(e.Groups) < 2 {
		return fmt.Errorf("there is one group, and a partition has two or more")
	}
	return nil
}

func parseNumber(text string, least, most float64) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= least && f <= most) {
		return 0, fmt.Errorf("%q is not a number from %v to %v", text, least, most)
	}
	return f, nil
}
