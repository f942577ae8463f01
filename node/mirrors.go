package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/limits"
	"atoll/node/mirror"
	"atoll/optimizer/trainer/corpus/shards"
)

// askMirrors begins to fetch the shard that is needed first of those that peers do not give and a
// mirror may have.
func (n *node) askMirrors(at time.Time) {
	c := n.corpus
	if c == nil || !c.Manifest().HasMirrors() || n.allowance.Paused() || !n.leaving.IsZero() {
		return
	}
	mirrorsOf := func(d wire.Digest) []string { return c.Manifest().MirrorsOf(shards.Digest(d)) }
	if from, b := n.mirrors.Choose(n.machine.Gossip().Wanted(), at, mirrorsOf); from != "" {
		n.askMirror(from, b)
	}
}

func (n *node) askMirror(from string, b gossip.Blob) {
	f := mirror.File{
		URL:   strings.TrimSuffix(from, "/") + fmt.Sprintf("/shards/%x.bin", b.Digest[:]),
		Agent: Agent, Size: b.Size, BytesPerSecond: n.allowance.Limits().Down,
	}
	c := n.corpus
	n.work.goRun(func(ctx context.Context) {
		body, err := mirror.Download(ctx, n.cfg.web, f)
		if err == nil {
			err = c.Put(b.Digest, body)
		}
		n.post(func(core.Time) { n.mirrored(from, b, len(body), err) })
	})
}

// mirrored takes what came of a download.
func (n *node) mirrored(from string, b gossip.Blob, bytes int, err error) {
	news := n.mirrors.Came(from, time.Now(), err)
	if n.allowance.Limits().Quota.Limited() {
		n.allowance.Count(time.Now(), limits.Bytes{Received: uint64(bytes)})
	}
	if err == nil {
		n.shardFound(b)
	} else if news {
		n.screen.Event("mirror", "", fmt.Sprintf("%s does not give shard %v: %v: tries others and peers", from, b.Digest, err))
	}
}
