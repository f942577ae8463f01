package testnet

import (
	"fmt"
	"strings"
	"time"
)

// How much more a node that lives throughout may take at the end than at the
// start, as a factor and a number on top. A leak grows without bound, while a
// fold or a repair that is just under way shows as some megabytes, goroutines
// and streams.
const (
	usageFactor     = 1.25
	rssSlack        = 32 << 20 // bytes: heap that the collector has not given back yet
	goroutinesSlack = 32       // requests that are parked
	filesSlack      = 12       // connections that are being dialled or closed
)

// warmUp is how long after a node has the run usage is first looked at: caches fill, connections are made. Before that a joiner has
// no model yet, and what trains it takes its memory with the first step.
const warmUp = 20 * time.Second

// usageSamples is the least number of statuses after it that tell anything.
const usageSamples = 30

// checkUsage compares the last third of each process that lived throughout with
// its first third. It is nil where none lived long enough.
func (w *world) checkUsage() *Check {
	c := Check{Name: "nothing leaks", Passed: true}
	worst := map[string]float64{}
	looked := 0
	for _, m := range w.members {
		first, last, ok := m.thirds()
		if !ok {
			continue
		}
		looked++
		for _, k := range []struct {
			name                string
			before, after, more float64
		}{
			{"memory", first.rss, last.rss, rssSlack},
			{"goroutines", first.goroutines, last.goroutines, goroutinesSlack},
			{"descriptors", first.files, last.files, filesSlack},
		} {
			if k.before == 0 {
				continue // the system does not say
			}
			worst[k.name] = max(worst[k.name], k.after/k.before)
			c.Passed = c.Passed && k.after <= usageFactor*k.before+k.more
		}
	}
	if looked == 0 {
		return nil
	}
	var parts []string
	for _, name := range []string{"memory", "goroutines", "descriptors"} {
		if x, ok := worst[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, x))
		}
	}
	c.Detail = fmt.Sprintf("%s; growth from the first third of the run to the last, at most: %s", plural(looked, "node"), strings.Join(parts, ", "))
	return &c
}

// thirds are the mean usage in the first and the last third of the life of a
// node that lived throughout.
func (m *member) thirds() (first, last usage, ok bool) {
	if len(m.lives) != 1 || m.lives[0].end() != "done" {
		return first, last, false
	}
	all := m.lives[0].usage
	for len(all) > 0 && all[0].joining {
		all = all[1:]
	}
	for from := all; len(all) > 0 && all[0].at < from[0].at+warmUp; {
		all = all[1:]
	}
	if len(all) < usageSamples {
		return first, last, false
	}
	third := len(all) / 3
	return meanUsage(all[:third]), meanUsage(all[len(all)-third:]), true
}

func meanUsage(all []usage) (mean usage) {
	n := float64(len(all))
	for _, u := range all {
		mean.rss += u.rss / n
		mean.goroutines += u.goroutines / n
		mean.files += u.files / n
	}
	return mean
}
