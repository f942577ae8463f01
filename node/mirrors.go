package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/limits"
	"atoll/optimizer/trainer/corpus/shards"
)

// Mirrors are folders on the web that the manifest of a corpus names. A shard comes from there
// if no peer has it, or none gives it. Nothing that they say is trusted: what they give is held
// against the shard's digest.
const (
	mirrorAlone   = 5 * time.Second  // for which no peer must have a shard before a mirror is asked
	mirrorStill   = 30 * time.Second // for which nothing of it must have come, if some have it
	mirrorWithin  = 5 * time.Minute  // for one shard: 8 MiB over 220 kbit/s
	mirrorAnswers = 15 * time.Second // for the begin of an answer
	mirrorHops    = 3                // redirects, as to a store of objects
	mirrorPause   = 30 * time.Second // for which a mirror that failed is left alone; it doubles
	mirrorMost    = 10 * time.Minute
	mirrorBlock   = 64 << 10 // bytes that are read at a time, where the downlink is capped
)

// mirrors is what the loop knows of mirrors.
type mirrors struct {
	busy   bool
	failed map[string]mirrorState // by address
	still  map[wire.Digest]stillness
}

type mirrorState struct {
	pause time.Duration
	until time.Time
}

// stillness is since when nothing more of a shard came.
type stillness struct {
	have  int64
	since time.Time
}

// mirrorClient is how mirrors are asked. It reaches public addresses alone: a manifest comes from
// a stranger, who must not have this machine ask its neighbours.
func mirrorClient() *http.Client {
	dialer := &net.Dialer{Timeout: mirrorAnswers, Control: publicOnly}
	return &http.Client{
		Timeout: mirrorWithin,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: mirrorAnswers, ResponseHeaderTimeout: mirrorAnswers,
			DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: fewRedirects,
	}
}

func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return fmt.Errorf("%v is no public address", ip)
	}
	return nil
}

func fewRedirects(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > mirrorHops:
		return fmt.Errorf("more than %d redirects", mirrorHops)
	case r.URL.Scheme != "https":
		return fmt.Errorf("a redirect to %s, which is not https", r.URL.Scheme)
	}
	return nil
}

// askMirrors begins to fetch the shard that is needed first of those that peers do not give and a
// mirror may have.
func (n *node) askMirrors(at time.Time) {
	c := n.corpus
	if c == nil || !c.dir.Manifest.HasMirrors() || c.mirrors.busy || n.allowance.Paused() || !n.leaving.IsZero() {
		return
	}
	for _, b := range c.mirrors.notComing(n.machine.Gossip().Wanted(), at) {
		if mirror := c.mirrors.next(c.dir.Manifest.MirrorsOf(shards.Digest(b.Digest)), at); mirror != "" {
			n.askMirror(mirror, b)
			return
		}
	}
}

func (n *node) askMirror(mirror string, b gossip.Blob) {
	c := n.corpus
	c.mirrors.busy = true
	url := strings.TrimSuffix(mirror, "/") + fmt.Sprintf("/shards/%x.bin", b.Digest[:])
	n.work.goRun(func(ctx context.Context) {
		body, err := n.download(ctx, url, b.Size)
		if err == nil {
			err = c.content.Put(b.Digest, body)
		}
		n.post(func(now core.Time) { n.mirrored(now, mirror, b, len(body), err) })
	})
}

// notComing are the shards that peers do not give, those that are needed first before others.
func (m *mirrors) notComing(wanted []gossip.BlobView, at time.Time) (list []gossip.Blob) {
	still := map[wire.Digest]stillness{}
	for _, v := range wanted {
		s, known := m.still[v.Digest]
		if !known || s.have != v.Have {
			s = stillness{v.Have, at}
		}
		still[v.Digest] = s
		waited := at.Sub(s.since)
		if waited >= mirrorStill || v.Sources == 0 && waited >= mirrorAlone {
			list = append(list, v.Blob)
		}
	}
	m.still = still
	return list
}

// next is the first of some mirrors that may be asked, "" if none may.
func (m *mirrors) next(list []string, at time.Time) string {
	for _, mirror := range list {
		if !at.Before(m.failed[mirror].until) {
			return mirror
		}
	}
	return ""
}

// download reads an answer of so many bytes, and not one more.
func (n *node) download(ctx context.Context, url string, size int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", Agent)
	response, err := n.cfg.web.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	if response.ContentLength >= 0 && response.ContentLength != size {
		return nil, fmt.Errorf("it has %d bytes, the manifest wants %d", response.ContentLength, size)
	}
	body := make([]byte, size)
	if err := n.readPaced(ctx, response.Body, body); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it has more than the %d bytes that the manifest wants", size)
	}
	return body, nil
}

// readPaced fills b, no faster than the downlink may be used.
func (n *node) readPaced(ctx context.Context, r io.Reader, b []byte) error {
	for len(b) > 0 {
		block := b[:min(len(b), mirrorBlock)]
		if _, err := io.ReadFull(r, block); err != nil {
			return err
		}
		b = b[len(block):]
		if n.cfg.Limits.Down == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(len(block)) * time.Second / time.Duration(n.cfg.Limits.Down)):
		}
	}
	return nil
}

// mirrored takes what came of a download.
func (n *node) mirrored(now core.Time, mirror string, b gossip.Blob, bytes int, err error) {
	m := &n.corpus.mirrors
	m.busy = false
	if n.cfg.Limits.Quota.Limited() {
		n.allowance.Count(time.Now(), limits.Bytes{Received: uint64(bytes)})
	}
	if err == nil {
		delete(m.failed, mirror)
		n.shardFound(b)
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	s := m.failed[mirror]
	if s.pause == 0 {
		n.screen.Event("mirror", "", fmt.Sprintf("%s does not give shard %v: %v: tries others and peers", mirror, b.Digest, err))
	}
	s.pause = min(max(2*s.pause, mirrorPause), mirrorMost)
	s.until = time.Now().Add(s.pause)
	if m.failed == nil {
		m.failed = map[string]mirrorState{}
	}
	m.failed[mirror] = s
}
