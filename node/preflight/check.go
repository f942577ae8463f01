package preflight

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/joinlink"
)

// Config is what a check is told.
type Config struct {
	Link    joinlink.Link
	Listen  []string // as the node will; empty for the usual port
	NoMDNS  bool
	Profile string // p2p profile; empty is p2p.WAN
	Agent   string
	Log     *slog.Logger // nil = discard
}

// Times of a check.
const (
	// nearWithin is how long members on the same network have to be heard: an answer by
	// multicast takes a second.
	nearWithin = 5 * time.Second
	// linkWithin bounds the dials, which the host bounds one by one.
	linkWithin = 20 * time.Second
	// routerWithin is how long a router may take to answer UPnP, and mappedWithin how much
	// longer to open a port.
	routerWithin = 11 * time.Second
	mappedWithin = 3 * time.Second
	lookAgain    = 100 * time.Millisecond
	// heartbeatWithin is how long a member's heartbeat is awaited: a few periods of most runs.
	heartbeatWithin = 10 * time.Second
	// callWithin bounds each question to a peer.
	callWithin = 10 * time.Second
	// sizeWithin bounds each try of a size of packets, of which four at most fail.
	sizeWithin = 6 * time.Second
	// maxWitnesses bounds the peers that are asked where they see this machine: two show
	// whether a router gives each connection another port.
	maxWitnesses = 2
	// dialsAtOnce is how many dial backs one peer makes at a time; maxBack bounds the
	// addresses.
	dialsAtOnce = 2
	maxBack     = 6
)

// check is a check under way.
type check struct {
	cfg   Config
	log   *slog.Logger
	host  *p2p.Host
	named map[wire.PeerID][]string // addresses of the link
	mu    sync.Mutex               // of what is below
	Facts
	heartbeat *wire.Heartbeat
	heard     map[wire.PeerID][]string // by multicast
}

// Check looks whether the link leads in, and how others reach this machine. It takes part in
// nothing: it has a key of its own that is used once, and opens the port of a router only
// while it looks. The error says why it could not look at all.
func Check(ctx context.Context, cfg Config) (Facts, error) {
	c := &check{cfg: cfg, log: cfg.Log, named: map[wire.PeerID][]string{}, heard: map[wire.PeerID][]string{}}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.Networks, c.LetsIn = Networks(), cfg.Link.LetsIn()
	if len(c.Networks) == 0 && cfg.Profile != p2p.Local {
		return c.Facts, nil
	}
	if err := c.open(); err != nil {
		return c.Facts, err
	}
	defer c.host.Close()
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { c.listen(ctx) })
	var router sync.WaitGroup
	router.Go(func() { c.askRouter(ctx) })
	if id, ok := c.enter(ctx); ok {
		c.askPeer(ctx, id)
		router.Wait() // what it opened is dialled back
		c.askBack(ctx, id)
	} else {
		c.narrowAny(ctx)
		router.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Facts, ctx.Err()
}

// Networks are the addresses of this machine on networks, without those of the link alone.
func Networks() (addrs []netip.Addr) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range interfaces {
		all, err := i.Addrs()
		if err != nil || i.Flags&net.FlagRunning == 0 {
			continue // a cable that is pulled leaves the address
		}
		for _, a := range all {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
				addrs = append(addrs, p.Addr())
			}
		}
	}
	slices.SortFunc(addrs, func(a, b netip.Addr) int { return a.Compare(b) })
	return addrs
}

// open makes a host for the check, which listens as a node would.
func (c *check) open() (err error) {
	profile := c.cfg.Profile
	if profile == "" {
		profile = p2p.WAN
	}
	c.host, err = c.newHost(p2p.Config{Listen: c.cfg.Listen, Profile: profile, Trial: profile == p2p.WAN, NoMDNS: c.cfg.NoMDNS})
	if err != nil {
		return err
	}
	for _, a := range c.host.Listening() {
		if port := portOf(a); port != 0 && strings.HasPrefix(a, "/ip4/") {
			c.Port = port
		}
	}
	if len(c.cfg.Listen) == 0 && profile == p2p.WAN && c.Port != p2p.DefaultPort {
		c.PortTaken = p2p.DefaultPort
	}
	return nil
}

// newHost makes a host with a key of its own.
func (c *check) newHost(cfg p2p.Config) (*p2p.Host, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	record := hello.Record{
		Protocol: hello.Protocol, Run: c.cfg.Link.Run, Seq: uint64(now), Role: hello.Observer, Precision: "f32",
		Agent: c.cfg.Agent, StartedMs: now, Stateless: true, Visits: true,
	}
	if pass := c.cfg.Link.Invite; pass != nil {
		if pass.Secret == nil {
			return nil, errors.New("the link's invite is for one node alone, so this check cannot use it: join with it, and then run atoll doctor with the node's folder")
		}
		record.Author = wire.PeerIDOf(key)
		certificate, err := pass.Admit(c.cfg.Link.Run, key)
		if err != nil {
			return nil, err
		}
		record.Certificate = certificate.Encode()
	}
	signed, err := hello.Sign(key, record)
	if err != nil {
		return nil, err
	}
	cfg.Key, cfg.Run, cfg.Agent, cfg.Log = key, c.cfg.Link.Run, c.cfg.Agent, c.log
	cfg.Record = func() hello.Signed { return signed }
	cfg.Check = func(_ wire.PeerID, raw []byte) error { _, err := wire.Open(c.cfg.Link.Run, raw); return err }
	return p2p.New(cfg)
}

// portOf is the port of an address, 0 if there is none.
func portOf(addr string) (port int) {
	parts := strings.Split(addr, "/")
	if len(parts) < 5 {
		return 0
	}
	if _, err := fmt.Sscan(parts[4], &port); err != nil {
		return 0
	}
	return port
}

// listen follows what comes from the network.
func (c *check) listen(ctx context.Context) {
	for {
		select {
		case e := <-c.host.Events():
			c.event(e)
		case <-ctx.Done():
			return
		}
	}
}

func (c *check) event(e p2p.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := e.(type) {
	case p2p.Hint:
		if e.Near {
			c.heard[e.ID] = e.Addrs
		}
	case p2p.Message:
		if m, err := wire.Decode(e.Data); err == nil && m.Heartbeat != nil && (c.heartbeat == nil || m.Heartbeat.Folded >= c.heartbeat.Folded) {
			c.heartbeat = m.Heartbeat
		}
	default: // a check does not take part
	}
}

// enter dials all that the link names, and who is heard on this network. It returns the first
// that lets this machine in: one that is elsewhere tells more than one on the same network.
func (c *check) enter(ctx context.Context) (first wire.PeerID, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, linkWithin)
	defer cancel()
	type outcome struct {
		id  wire.PeerID
		err error
	}
	named := c.named
	for _, addr := range joinlink.WithRelays(c.cfg.Link.Peers) {
		if id, err := address.PeerIDOf(addr); err == nil {
			named[id] = append(named[id], addr)
		}
	}
	came := make(chan outcome)
	for id, addrs := range named {
		go func() {
			err := c.host.DialPeer(ctx, id, addrs)
			select {
			case came <- outcome{id, err}:
			case <-ctx.Done():
			}
		}()
	}
	for range named {
		select {
		case o := <-came:
			if o.err == nil {
				c.record(o.id, named[o.id], false)
				return o.id, true
			}
			for _, addr := range named[o.id] {
				c.Tried = append(c.Tried, Tried{addr, o.err})
			}
		case <-ctx.Done():
			for _, addrs := range named {
				if !slices.ContainsFunc(c.Tried, func(t Tried) bool { return t.Addr == addrs[0] }) {
					c.Tried = append(c.Tried, Tried{addrs[0], ctx.Err()})
				}
			}
			return first, false
		}
	}
	return c.enterNear(ctx)
}

// enterNear waits for a member on the same network.
func (c *check) enterNear(ctx context.Context) (first wire.PeerID, ok bool) {
	if c.cfg.NoMDNS || c.cfg.Profile == p2p.Local {
		return first, false // nobody is heard
	}
	until := time.Now().Add(nearWithin)
	for tried := map[wire.PeerID]bool{}; time.Now().Before(until) && ctx.Err() == nil; wait(ctx, lookAgain) {
		c.mu.Lock()
		var next wire.PeerID
		for id := range c.heard {
			if !tried[id] {
				tried[id], next = true, id
				break
			}
		}
		addrs := c.heard[next]
		c.mu.Unlock()
		if addrs != nil && c.host.DialPeer(ctx, next, addrs) == nil {
			c.record(next, addrs, true)
			return next, true
		}
	}
	return first, false
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// record keeps at which of its addresses a peer let this machine in.
func (c *check) record(id wire.PeerID, addrs []string, elsewhere bool) {
	path, ok := c.host.Path(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Reached, c.Elsewhere = addrs[0], elsewhere
	if ok && slices.Contains(addrs, path.Addr) {
		c.Reached = path.Addr
	}
}

// askRouter waits for what a router says to UPnP.
func (c *check) askRouter(ctx context.Context) {
	if c.cfg.Profile == p2p.Local {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, routerWithin)
	defer cancel()
	var mapped []string
	answers := false
	var until time.Time
	for ; ctx.Err() == nil; wait(ctx, lookAgain) {
		if mapped, answers = c.host.Mapped(); len(mapped) > 0 {
			break
		}
		if answers && until.IsZero() {
			until = time.Now().Add(mappedWithin)
		}
		if answers && time.Now().After(until) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Router, c.Mapped = &answers, mapped
}

// askPeer asks the peer that let this machine in about the run, the time, and where it sees this
// machine come from.
func (c *check) askPeer(ctx context.Context, id wire.PeerID) {
	c.askClock(ctx, id)
	c.askRun(ctx, id) // gossip has its streams when the first heartbeat is there
	c.askLarge(ctx, id)
	c.askSeen(ctx, id)
}

func (c *check) askClock(ctx context.Context, id wire.PeerID) {
	ahead, within, err := c.host.ClockAhead(ctx, id)
	if err != nil {
		c.log.Debug("ask for the time", "err", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Clock = &Clock{ahead, within}
}

// askRun learns what the run is, and from a heartbeat how far it is.
func (c *check) askRun(ctx context.Context, id wire.PeerID) {
	raw, err := c.ask(ctx, id, wire.Request{Kind: wire.GetGenesis, Run: c.cfg.Link.Run})
	if err == nil {
		raw, err = wire.OpenGenesis(c.cfg.Link.Run, raw)
	}
	var g genesis.Genesis
	if err == nil {
		g, err = genesis.Decode(raw)
	}
	if err != nil {
		c.log.Debug("ask for the genesis", "err", err)
		return
	}
	for until := time.Now().Add(heartbeatWithin); c.latestHeartbeat() == nil && time.Now().Before(until) && ctx.Err() == nil; {
		wait(ctx, lookAgain)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Run = &Run{Name: fmt.Sprintf("%s (%s)", g.Name, g.ModelLabel()), Budget: g.Outer.Budget}
	if c.heartbeat != nil {
		c.Run.Folded = c.heartbeat.Folded
		c.Run.Over = c.heartbeat.Folded >= g.Outer.Budget
	}
}

func (c *check) latestHeartbeat() *wire.Heartbeat {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heartbeat
}

// ask makes a request of a peer, and returns the body of its answer as it came.
func (c *check) ask(ctx context.Context, id wire.PeerID, r wire.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return c.host.Call(ctx, id, r.Encode(), r.Kind.MaxResponse())
}

// peerList is the records that a peer has of members, its own included if it is one.
func (c *check) peerList(ctx context.Context, id wire.PeerID) (members []hello.Record) {
	raw, err := c.ask(ctx, id, wire.Request{Kind: wire.GetPeerList})
	if err == nil {
		raw, err = wire.OpenResponse(raw, wire.GetPeerList.MaxResponse())
	}
	var list wire.PeerList
	if err == nil {
		list, err = wire.DecodePeerList(raw)
	}
	if err != nil {
		c.log.Debug("ask for the peer list", "err", err)
		return nil
	}
	seen := map[wire.PeerID]bool{}
	for _, b := range list.Records {
		s, err := hello.Parse(b)
		if err != nil {
			return members
		}
		r, err := s.Open()
		if err != nil || r.Run != c.cfg.Link.Run {
			return members
		}
		if !seen[r.Author] && !r.Stateless {
			seen[r.Author], members = true, append(members, r)
		}
	}
	return members
}

// askSeen asks the peer, and another one that others reach by themselves, where they see this
// machine come from.
func (c *check) askSeen(ctx context.Context, id wire.PeerID) {
	witnesses := []wire.PeerID{id}
	c.seenBy(ctx, id)
	for _, r := range c.peerList(ctx, id) {
		if len(witnesses) >= maxWitnesses {
			break
		}
		if r.Author == id || !r.Relays || len(r.Addrs) == 0 {
			continue
		}
		within, cancel := context.WithTimeout(ctx, callWithin)
		if err := c.host.DialPeer(within, r.Author, r.Addrs); err == nil {
			witnesses = append(witnesses, r.Author)
			c.seenBy(ctx, r.Author)
		}
		cancel()
	}
}

func (c *check) seenBy(ctx context.Context, id wire.PeerID) {
	seen, err := c.host.SeenBy(ctx, id)
	if err != nil {
		c.log.Debug("ask where a peer sees this machine", "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Seen = append(c.Seen, seen...)
}

// narrower are segments to try where the usual ones are lost. The last is what every machine takes (RFC 9293, section 3.7.1).
var narrower = []int{1160, 1060, 960, 860, 760, 536}

// askLarge has a peer that let this machine in send back large packets.
func (c *check) askLarge(ctx context.Context, id wire.PeerID) {
	if err := c.host.Echo(ctx, id); err != nil {
		c.log.Debug("ask for large packets", "err", err)
		if c.Clock != nil { // small ones pass
			c.narrow(ctx, c.named[id])
		}
		return
	}
	c.setPackets(Packets{Addr: c.Reached})
}

// narrowAny tries smaller packets with the first peer that is connected and brings no handshake to an end.
func (c *check) narrowAny(ctx context.Context) {
	if i := slices.IndexFunc(c.Tried, func(t Tried) bool { return errors.Is(t.Err, p2p.ErrNoHandshake) }); i >= 0 {
		if id, err := address.PeerIDOf(c.Tried[i].Addr); err == nil {
			c.narrow(ctx, c.named[id])
		}
	}
}

// narrow finds the largest packets that pass both ways, by visits one after another: a node takes few at a time. Packets of UDP cannot be that
// small.
func (c *check) narrow(ctx context.Context, addrs []string) {
	p := Packets{Slow: true}
	tcp := slices.DeleteFunc(slices.Clone(addrs), func(a string) bool {
		return !strings.Contains(a, "/tcp/") || strings.Contains(a, "/ws") || strings.Contains(a, "/p2p-circuit")
	})
	if len(tcp) > 0 {
		p = largest(func(bytes int) bool {
			err := c.echoesIn(ctx, tcp, bytes)
			c.log.Debug("tried segments", "bytes", bytes, "err", err)
			return err == nil
		})
	}
	p.Addr = c.Reached
	if all := slices.Concat(tcp, addrs); len(all) > 0 {
		p.Addr = all[0]
	}
	c.setPackets(p)
}

// largest finds out which segments pass by few tries. Size is to blame only where small ones pass and then those of atoll do not.
func largest(passes func(bytes int) bool) Packets {
	last := len(narrower) - 1
	if !passes(narrower[last]) {
		return Packets{Slow: true}
	}
	if passes(p2p.SegmentBytes) {
		return Packets{} // it was busy for a moment
	}
	i := sort.Search(last, func(i int) bool { return passes(narrower[i]) })
	return Packets{Lost: p2p.SegmentBytes + headers, Passes: narrower[i] + headers}
}

func (c *check) setPackets(p Packets) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Packets = &p
}

// echoesIn has a peer send back what comes in segments of so many bytes at most.
func (c *check) echoesIn(ctx context.Context, addrs []string, bytes int) error {
	id, err := address.PeerIDOf(addrs[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sizeWithin)
	defer cancel()
	host, err := c.newHost(p2p.Config{Profile: p2p.LAN, NoMDNS: true, SegmentBytes: bytes})
	if err != nil {
		return err
	}
	defer host.Close()
	if err := host.DialPeer(ctx, id, addrs); err != nil {
		return err
	}
	return host.Echo(ctx, id)
}

// askBack has the peer dial the addresses that this machine may have.
func (c *check) askBack(ctx context.Context, id wire.PeerID) {
	addrs := c.candidates()
	slots := make(chan struct{}, dialsAtOnce)
	var work sync.WaitGroup
	for _, addr := range addrs[:min(len(addrs), maxBack)] {
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c.mu.Lock()
			enough := slices.ContainsFunc(c.Back, func(b Back) bool { return b.Through })
			c.mu.Unlock()
			if enough || ctx.Err() != nil {
				return
			}
			through, err := c.host.DialBack(ctx, id, addr)
			c.log.Debug("dialled back", "addr", addr, "through", through, "err", err)
			c.mu.Lock()
			c.Back = append(c.Back, Back{addr, through, err})
			c.mu.Unlock()
		})
	}
	work.Wait()
}

// candidates are the addresses of the internet that this machine may have: of its own, those that
// the router opened, and where the internet sees it, with the port that it listens on.
func (c *check) candidates() (addrs []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	machines := slices.DeleteFunc(slices.Clone(c.Networks), func(a netip.Addr) bool { return !public(a) })
	if outside, known := c.outside(); known {
		addrs = append(addrs, c.Mapped...)
		if !slices.Contains(machines, outside) {
			machines = append(machines, outside)
		}
	}
	for _, m := range machines {
		kind := "ip6"
		if m.Is4() {
			kind = "ip4"
		}
		for _, transport := range []string{"tcp/%d", "udp/%d/quic-v1"} {
			addrs = append(addrs, fmt.Sprintf("/%s/%s/"+transport, kind, m, c.Port))
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
