package data

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"atoll/optimizer/trainer/corpus/shards"
)

// ReadsFile is the file in a node's folder that says which shards its learner read: a line of JSON
// for each shard when a step first reads of it, before that step is taken. With the step log it tells
// what was trained on. Lines wait in memory while the disk takes none.
const ReadsFile = "reads.jsonl"

// Read is a line of ReadsFile.
type Read struct {
	Step  int64         `json:"step"` // as the trainer counts, from 0
	Rows  int           `json:"rows"` // of that step
	Shard shards.Digest `json:"shard"`
}

// reads is what a learner has read of its window. It belongs to the training thread.
type reads struct {
	path    string
	seen    map[shards.Digest]bool
	waiting []byte
}

// record writes which shards a step reads that earlier ones did not.
func (r *reads) record(step int64, rows int, list []shards.Shard, window func() []shards.Shard) error {
	fresh := false
	for _, s := range list {
		if r.seen[s.Digest] {
			continue
		}
		b, err := json.Marshal(Read{step, rows, s.Digest})
		if err != nil {
			return err
		}
		r.waiting, fresh = append(append(r.waiting, b...), '\n'), true
	}
	if fresh {
		r.moveOn(list, window())
	}
	if len(r.waiting) == 0 {
		return nil
	}
	err := appendTo(r.path, r.waiting)
	if err == nil {
		r.waiting = nil
	}
	return err
}

// moveOn keeps of what was read what is in the window.
func (r *reads) moveOn(list, window []shards.Shard) {
	was := r.seen
	r.seen = map[shards.Digest]bool{} // what the window has left is recorded anew when it comes back
	for _, s := range window {
		r.seen[s.Digest] = was[s.Digest]
	}
	for _, s := range list {
		r.seen[s.Digest] = true
	}
}

func appendTo(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Fits implements trainer.Source.
func (c *Corpus) Fits(context int) error { return c.source.Fits(context) }

// Batch implements trainer.Source, and records what is read.
func (c *Corpus) Batch(ctx context.Context, seed uint64, author [32]byte, step int64, rows, context int, dst []int32) error {
	if err := c.source.Batch(ctx, seed, author, step, rows, context, dst); err != nil {
		return err
	}
	c.recordReads(seed, author, step, rows, context, c.source.Reads())
	return nil
}

func (c *Corpus) recordReads(seed uint64, author [32]byte, step int64, rows, context int, list []shards.Shard) {
	c.cfg.Report("record what is read", c.reads.record(step, rows, list, func() []shards.Shard { return c.source.Window(seed, author, step, context) }))
}
