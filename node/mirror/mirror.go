// Package mirror fetches shards from folders on the web that the manifest of a corpus names: where no peer has a shard, or none gives it.
// Nothing that mirrors say is trusted: whoever asks holds what they give against the shard's digest.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// Times and limits of a download.
const (
	waitAlone     = 5 * time.Second  // for which no peer must have a shard before a mirror is asked
	waitStill     = 30 * time.Second // for which nothing of it must have come, if some have it
	getWithin     = 5 * time.Minute  // for one shard: 8 MiB over 220 kbit/s
	answersWithin = 15 * time.Second // for the begin of an answer
	mostHops      = 3                // redirects, as to a store of objects
	leastPause    = 30 * time.Second // for which a mirror that failed is left alone; it doubles
	mostPause     = 10 * time.Minute
	blockSize     = 64 << 10 // bytes that are read at a time, where the downlink is capped
)

// Mirrors is what is known of mirrors, one of which is asked at a time. It belongs to one goroutine, and does not download.
type Mirrors struct {
	busy   bool
	failed map[string]failure // by address
	still  map[wire.Digest]stillness
}

type failure struct {
	pause time.Duration
	until time.Time
}

// stillness is since when nothing more of a shard came.
type stillness struct {
	have  int64
	since time.Time
}

// Choose is which mirror to ask for which shard: the one that is needed first of those that peers do not give and a mirror may have;
// no mirror if there is none, or one is asked. Came has to say what came of it.
func (m *Mirrors) Choose(wanted []gossip.BlobView, at time.Time, mirrorsOf func(wire.Digest) []string) (mirror string, b gossip.Blob) {
	if m.busy {
		return "", gossip.Blob{}
	}
	for _, b := range m.notComing(wanted, at) {
		if mirror := m.next(mirrorsOf(b.Digest), at); mirror != "" {
			m.busy = true
			return mirror, b
		}
	}
	return "", gossip.Blob{}
}

// Came takes what came of a download, and returns whether it is the first in a row for which that mirror is left alone.
func (m *Mirrors) Came(mirror string, at time.Time, err error) (news bool) {
	m.busy = false
	if err == nil {
		delete(m.failed, mirror)
		return false
	}
	if errors.Is(err, context.Canceled) {
		return false
	}
	s := m.failed[mirror]
	news = s.pause == 0
	s.pause = min(max(2*s.pause, leastPause), mostPause)
	s.until = at.Add(s.pause)
	if m.failed == nil {
		m.failed = map[string]failure{}
	}
	m.failed[mirror] = s
	return news
}

// notComing are the shards that peers do not give, those that are needed first before others.
func (m *Mirrors) notComing(wanted []gossip.BlobView, at time.Time) (list []gossip.Blob) {
	still := map[wire.Digest]stillness{}
	for _, v := range wanted {
		s, known := m.still[v.Digest]
		if !known || s.have != v.Have {
			s = stillness{v.Have, at}
		}
		still[v.Digest] = s
		waited := at.Sub(s.since)
		if waited >= waitStill || v.Sources == 0 && waited >= waitAlone {
			list = append(list, v.Blob)
		}
	}
	m.still = still
	return list
}

// next is the first of some mirrors that may be asked, "" if none may.
func (m *Mirrors) next(list []string, at time.Time) string {
	for _, mirror := range list {
		if !at.Before(m.failed[mirror].until) {
			return mirror
		}
	}
	return ""
}

// Client is how mirrors are asked. It reaches public addresses alone: a manifest comes from
// a stranger, who must not have this machine ask its neighbours.
func Client() *http.Client {
	dialer := &net.Dialer{Timeout: answersWithin, Control: publicOnly}
	return &http.Client{
		Timeout: getWithin,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: answersWithin, ResponseHeaderTimeout: answersWithin,
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
	case len(via) > mostHops:
		return fmt.Errorf("more than %d redirects", mostHops)
	case r.URL.Scheme != "https":
		return fmt.Errorf("a redirect to %s, which is not https", r.URL.Scheme)
	}
	return nil
}

// File is what to download.
type File struct {
	URL            string
	Agent          string // that asks
	Size           int64
	BytesPerSecond int64 // 0 = as the link carries
}

// Download reads an answer of so many bytes as the file has, and not one more.
func Download(ctx context.Context, client *http.Client, f File) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", f.Agent)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	if response.ContentLength >= 0 && response.ContentLength != f.Size {
		return nil, fmt.Errorf("it has %d bytes, the manifest wants %d", response.ContentLength, f.Size)
	}
	body := make([]byte, f.Size)
	if err := readPaced(ctx, response.Body, body, f.BytesPerSecond); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it has more than the %d bytes that the manifest wants", f.Size)
	}
	return body, nil
}

// readPaced fills b, no faster than so many bytes a second; 0 is no limit.
func readPaced(ctx context.Context, r io.Reader, b []byte, perSecond int64) error {
	for len(b) > 0 {
		block := b[:min(len(b), blockSize)]
		if _, err := io.ReadFull(r, block); err != nil {
			return err
		}
		b = b[len(block):]
		if perSecond == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(len(block)) * time.Second / time.Duration(perSecond)):
		}
	}
	return nil
}
