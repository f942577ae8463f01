package headline

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atoll/node/status"
	"atoll/node/trace"
	"atoll/testnet"
	"atoll/testnet/lab/trials"
)

// This file holds the rows about nodes that die: what a schedule of kills leaves of the work, and what one kill takes.

// killEvery are the schedules, with what is asked of each.
var killEvery = []struct {
	every time.Duration
	least float64
}{{time.Minute, 0.95}, {15 * time.Second, 0.85}}

// killPace is the pace of the row kills: eight learners of tiny and the starts of those that were killed have room on two
// cores, also those of dp.
const killPace = 500 * time.Millisecond

// Length of a run of the row kills in which nobody dies.
const (
	killsFor      = 10 * time.Minute
	killsForQuick = 40 * time.Second
)

const killNodes = 8

// systems are those that a schedule is played with.
var systems = []string{"atoll", "dp", "diloco"}

var killsRow = Row{
	Name: "kills", About: "goodput under kills, one of 8 down for 10 s", Takes: "70 minutes", TakesQuick: "three minutes", Pace: killPace,
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		for _, k := range killEvery {
			if s.Quick && k.every > killsForQuick {
				continue
			}
			steps := func(d time.Duration) float64 { return float64(d/killPace) * killNodes * tinyStep }
			for _, system := range systems {
				worlds = append(worlds, testnetWorld(fmt.Sprintf("%s, every %v", system, k.every),
					"--nodes", fmt.Sprint(killNodes), "--data", "goroot", "--optimizer", "adamw", "--seed", fmt.Sprint(seed), noEval,
					"--tokens", s.tokens(steps(killsFor), steps(killsForQuick)),
					"--baseline", system, "--chaos", fmt.Sprintf("kill any every %v for 10s", k.every)))
			}
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, k := range killEvery {
			atoll, have := o[fmt.Sprintf("atoll, every %v", k.every)]
			if !have {
				continue
			}
			every := fmt.Sprintf("a kill every %v", k.every)
			lines = append(lines, alone(every+": useful share of the time that processes lived", "", value(atoll.Report.GoodputUp), trials.AtLeast(k.least)),
				alone(every+": kills", "", float64(atoll.Report.Kills), trials.Shown))
			for _, system := range systems[1:] {
				beside, have := o[fmt.Sprintf("%s, every %v", system, k.every)]
				if !have {
					continue
				}
				lines = append(lines,
					over(every+", beside "+system, "useful share", value(atoll.Report.GoodputUp), value(beside.Report.GoodputUp), system, trials.Shown),
					over(every+", speed beside "+system, "tokens/s", atoll.Report.TokensPerS, beside.Report.TokensPerS, system, trials.Shown))
			}
		}
		return lines
	},
}

// recoveries are the kills of the row recovery, some seconds apart.
const (
	recoveries      = 10
	recoveriesQuick = 2
	recoverEvery    = 25 * time.Second
	recoverFrom     = 15 * time.Second
	recoverDown     = 10 * time.Second
	recoverPace     = 250 * time.Millisecond
)

// Names of the times of a kill.
const (
	detected = "detect"
	excluded = "exclude"
	rejoined = "rejoin"
	folded   = "first contribution"
)

// stages of a recovery, with what they are and what is asked of the median.
var stages = []struct {
	name, what string
	asked      trials.Target
}{
	{detected, "detect: from the kill until a survivor says that the node is silent", trials.Shown},
	{excluded, "exclude: from the kill until a survivor closes a round without it", trials.Shown},
	{rejoined, "rejoin: from its restart until it trains on the state that all hold", trials.Shown},
	{folded, "first contribution: from its restart until a delta of its own is folded", trials.AtMost(5)},
}

var recoveryRow = Row{
	Name: "recovery", About: "recovery from kill -9", Takes: "6 minutes", TakesQuick: "two minutes", Pace: recoverPace,
	Worlds: func(s Settings, seed uint64) []World {
		kills := recoveries
		if s.Quick {
			kills = recoveriesQuick
		}
		var events []string
		for i := range kills {
			at := recoverFrom + time.Duration(i)*recoverEvery
			events = append(events, fmt.Sprintf("kill %d @%v", 1+i%3, at), fmt.Sprintf("start %d @%v", 1+i%3, at+recoverDown))
		}
		lasts := recoverFrom + time.Duration(kills)*recoverEvery
		w := testnetWorld("atoll", "--nodes", "4", "--data", "goroot", "--optimizer", "adamw", "--seed", fmt.Sprint(seed), "--trace", noEval,
			"--tokens", fmt.Sprintf("%.0f", 4*tinyStep*lasts.Seconds()/recoverPace.Seconds()), "--chaos", strings.Join(events, ", "))
		w.Read = readRecovery
		return []World{w}
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		atoll, have := o["atoll"]
		for _, s := range stages {
			if have && len(atoll.Times[s.name]) > 0 {
				lines = append(lines, alone(s.what, "s", trials.Median(atoll.Times[s.name]), s.asked))
			}
		}
		return lines
	},
}

// readRecovery fills in the times of all kills, by what the nodes wrote down. A stage that a kill did not come to, because the
// run ended, is left out.
func readRecovery(dir string, o *Outcome) error {
	o.Times = map[string][]float64{}
	nodes := o.Report.NodesReport
	lines, err := readTrace(filepath.Join(dir, trace.File))
	if err != nil {
		return err
	}
	said := map[string][]status.Event{}
	for _, n := range nodes {
		if said[n.Name], err = readEvents(filepath.Join(dir, n.Name, status.EventsFile)); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		for i, life := range n.Lives {
			if !life.Killed {
				continue
			}
			o.add(detected, life.Ended, firstEvent(said, nodes, n, life.Ended))
			o.add(excluded, life.Ended, firstRound(lines, n.ID, life.Ended))
			if i+1 < len(n.Lives) {
				back := n.Lives[i+1]
				o.add(rejoined, back.Began, eventAfter(said[n.Name], "join", "", back.Began))
				o.add(folded, back.Began, eventAfter(said[n.Name], "contributing", "", back.Began))
			}
		}
	}
	return nil
}

// add records how long a stage took, unless it never came.
func (o *Outcome) add(stage string, from, until time.Time) {
	if !until.IsZero() {
		o.Times[stage] = append(o.Times[stage], until.Sub(from).Seconds())
	}
}

// firstEvent is when the first of the others said that a node is silent.
func firstEvent(said map[string][]status.Event, nodes []testnet.NodeReport, dead testnet.NodeReport, from time.Time) (first time.Time) {
	for _, n := range nodes {
		at := eventAfter(said[n.Name], "silent", dead.ID, from)
		if n.Name != dead.Name && !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// eventAfter is when the first event of a kind came, about a peer if one is named. Events shorten its name.
func eventAfter(events []status.Event, kind, peer string, from time.Time) time.Time {
	for _, e := range events {
		if e.Kind == kind && e.At.After(from) && (peer == "" || e.Peer != "" && strings.HasPrefix(peer, e.Peer)) {
			return e.At
		}
	}
	return time.Time{}
}

// firstRound is when a survivor first closed a round after the kill in which the dead node has no delta.
func firstRound(lines []trace.Line, dead string, from time.Time) (first time.Time) {
	type round struct {
		node, fragment string
		number         uint32
	}
	closed, has := map[round]int64{}, map[round]bool{}
	for _, l := range lines {
		r := round{hex.EncodeToString(l.Node[:]), fmt.Sprint(l.Fragment), l.Round}
		if r.node == dead || l.Closed <= from.UnixMilli() || l.Late {
			continue
		}
		closed[r] = l.Closed
		has[r] = has[r] || hex.EncodeToString(l.Author[:]) == dead
	}
	for r, at := range closed {
		if t := time.UnixMilli(at); !has[r] && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func readTrace(path string) ([]trace.Line, error)    { return readLines[trace.Line](path) }
func readEvents(path string) ([]status.Event, error) { return readLines[status.Event](path) }

// longestLine bounds a line of a trace or of events.
const longestLine = 1 << 20

// readLines reads a file of JSON lines; of one that is not there, none.
func readLines[T any](path string) (all []T, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the nodes wrote: %w", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, longestLine)
	for s.Scan() {
		var t T
		if len(s.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(s.Bytes(), &t); err != nil {
			continue // a process that was killed leaves half a line
		}
		all = append(all, t)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return all, nil
}
