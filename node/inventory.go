package node

import (
	"fmt"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
	"atoll/node/store"
)

// inventoryUp tells the machine what this node has of the corpus, and what it needs first, or what it has beside weights.
func (n *node) inventoryUp() {
	c, now := n.corpus, n.clock.Now()
	if n.beside != nil {
		n.beside.Whole(func(d wire.Digest, _ string, size int64) { n.machine.HoldBlob(now, gossip.Blob{Digest: d, Size: size}) })
	}
	if c == nil {
		return
	}
	c.Inventory(func(b gossip.Blob) { n.machine.HoldBlob(now, b) },
		func(d wire.Digest, parts wire.PartSet) { n.machine.HoldParts(now, d, parts) })
	if n.built != nil { // which nobody steps yet
		c.Next(n.built.Steps())
	}
	n.replanShards()
}

// replanShards says what is needed from the next step on, whatever was known.
func (n *node) replanShards() {
	if n.corpus == nil {
		return
	}
	n.loosen()
	n.corpus.Plan()
	n.wantShards(n.clock.Now())
}

// planShards says what is needed from a step on, unless that is known.
func (n *node) planShards(step int64) {
	if n.corpus == nil || !n.corpus.Next(step) {
		return
	}
	n.replanShards()
}

// tighten makes room on a full disk: shards that no step reads yet, or any more, go. It returns how many.
func (n *node) tighten() (dropped int) {
	before := n.corpus.Files()
	n.corpus.Tighten()
	n.wantShards(n.clock.Now())
	return before - n.corpus.Files()
}

// loosen lets shards be fetched ahead again once the disk has room.
func (n *node) loosen() {
	if !n.corpus.Tight() || n.disk.trouble != store.Well {
		return
	}
	free, err := n.cfg.disk.FreeBytes(n.cfg.Dir)
	if n.check("look how much room there is", err); err == nil {
		n.corpus.Loosen(free)
	}
}

// wantShards has the shards fetched that are needed and not here, and makes room for them.
func (n *node) wantShards(now core.Time) {
	missing, dropped, err := n.corpus.MakeRoom()
	n.check("delete shards that are not needed", err)
	for _, d := range dropped {
		n.machine.DropBlob(now, d)
	}
	n.machine.WantBlobs(now, missing)
}

// shardLost says that a file was not what it says, and has it fetched again.
func (n *node) shardLost(d wire.Digest, err error) {
	n.post(func(now core.Time) {
		n.screen.Alarm("damaged", "", fmt.Sprintf("shard %v: %v: fetches it again", d, err), "check that disk")
		n.machine.DropBlob(now, d)
		n.wantShards(now)
	})
}

// shardFound says that a file is here that peers did not give.
func (n *node) shardFound(b gossip.Blob) {
	n.post(func(now core.Time) {
		n.machine.HoldBlob(now, b)
		n.wantShards(now)
	})
}

// dataStatus says what this node has of the shards that it needs; nil where there are none.
func (n *node) dataStatus() *status.Data {
	c := n.corpus
	if c == nil {
		return nil
	}
	s := &status.Data{Corpus: c.Manifest().Name, Waiting: n.train != nil && n.train.LacksData()}
	s.Needed, _ = c.Needed()
	s.UsedBytes, s.LimitBytes = c.Usage()
	for _, v := range n.machine.Gossip().Wanted() {
		if c.Has(v.Digest) {
			continue
		}
		s.Missing++
		s.MissingBytes += v.Size - v.Have
		if s.Missing == 1 {
			s.Next = fmt.Sprintf("shard %v: %.0f %% of %s, %s", v.Digest, 100*float64(v.Have)/float64(v.Size), status.Bytes(float64(v.Size)), sourcesText(v.Sources))
		}
	}
	return s
}

// sourcesText says who has what is missing.
func sourcesText(sources int) string {
	switch sources {
	case 0:
		return "no peer that is here has the rest"
	case 1:
		return "1 peer has more of it"
	}
	return fmt.Sprintf("%d peers have more of it", sources)
}
