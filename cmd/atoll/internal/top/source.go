package top

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"atoll/node/status"
)

// Times of polls.
const (
	pollEvery = time.Second
	// answerWithin is how long one node may take to answer: a screen that waits for a busy one stands still.
	answerWithin = 2 * time.Second
	// missesToEnd is how many polls in a row a node may not run before it has ended: one that is started
	// again is away for a moment.
	missesToEnd = 3
)

// Node is what was last heard of one node.
type Node struct {
	Name    string // of its folder
	Dir     string // its folder
	Running bool
	Died    bool // it runs no more, and did not end in order
	Status  status.Snapshot
}

// Source asks the nodes of some folders.
type Source struct {
	folders func() []string // there may be more of them later
	known   map[string]*Node
	misses  map[string]int
	starts  bool // a node runs, and had no status yet at the last poll
}

// NewSource asks the nodes on the folders that a function lists.
func NewSource(folders func() []string) *Source {
	return &Source{folders: folders, known: map[string]*Node{}, misses: map[string]int{}}
}

// Poll asks all nodes and returns what is known of each that has ever answered, in the order of their
// folders. It calls at most one at a time.
func (s *Source) Poll(ctx context.Context) []Node {
	dirs := s.folders()
	answers, errs := make([]status.Snapshot, len(dirs)), make([]error, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { answers[i], errs[i] = ask(ctx, dir) })
	}
	all.Wait()
	var nodes []Node
	s.starts = false
	for i, dir := range dirs {
		if s.record(dir, answers[i], errs[i]); s.known[dir] != nil {
			nodes = append(nodes, *s.known[dir])
		}
	}
	return oneRun(nodes)
}

// Idle reports whether the last poll found no node that runs, or is about to.
func (s *Source) Idle() bool {
	for _, n := range s.known {
		if n.Running {
			return false
		}
	}
	return !s.starts
}

// record keeps an answer, or that there was none.
func (s *Source) record(dir string, answer status.Snapshot, err error) {
	n := s.known[dir]
	if err == nil {
		clean(&answer)
		s.known[dir], s.misses[dir] = &Node{Name: status.Printable(filepath.Base(dir)), Dir: dir, Running: true, Status: answer}, 0
		return
	}
	if !errors.Is(err, status.ErrNotRunning) {
		s.starts = true // or it is busy
		return
	}
	if n == nil {
		return
	}
	if s.misses[dir]++; s.misses[dir] >= missesToEnd {
		n.Running, n.Died = false, status.Died(dir)
		n.last()
	}
}

// last takes what the node wrote when it ended: a poll may have missed the end of the run.
func (n *Node) last() {
	final, err := status.ReadFinal(n.Dir)
	if err != nil || n.Died || final.Self != n.Status.Self || final.At.Before(n.Status.At) {
		return
	}
	clean(&final)
	n.Status = final
}

// oneRun leaves out nodes of other runs than that of the first.
func oneRun(nodes []Node) []Node {
	var same []Node
	for _, n := range nodes {
		if n.Status.Run == nodes[0].Status.Run {
			same = append(same, n)
		}
	}
	return same
}

func ask(ctx context.Context, dir string) (status.Snapshot, error) {
	client, err := status.Dial(dir)
	if err != nil {
		return status.Snapshot{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return client.Snapshot(ctx)
}

// ended reports whether nodes were there and all have ended.
func ended(nodes []Node) bool {
	for _, n := range nodes {
		if n.Running {
			return false
		}
	}
	return len(nodes) > 0
}

// Folders lists dir itself, or the folders in it that are of nodes. isNode tells which are.
func Folders(dir string, isNode func(string) bool) []string {
	if isNode(dir) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && isNode(path) {
			found = append(found, path)
		}
	}
	return found
}
