// Package relay is a process for runs whose learners are all at home, on a machine that
// others reach. It introduces them to each other, passes on what goes between two that find
// no direct way, and spreads gossip. It holds nothing of a run but the genesis document,
// so that a newcomer who knows no other address gets in, and who was admitted to it and revoked.
//
// To its peers a relay is an observer that says nothing: it sends no heartbeats, so nobody waits for it.
package relay

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

// Config is what a relay is told.
type Config struct {
	Key     ed25519.PrivateKey
	Name    string          // for members; "" = none
	Dir     string          // in which it remembers of runs that ask for an invite who was admitted and revoked; "" = nowhere
	Runs    []joinlink.Link // their runs, and the invites where runs ask for one; addresses are not used
	Listen  []string        // of the first run. Empty: the usual port, and the next ones for the other runs, where they are free
	Web     bool            // listen on port 443 as well, for the first run
	Profile string          // p2p profile; empty is p2p.WAN
	// BytesPerSecond limits what each run's nodes may send each other through this one; 0
	// takes the default of p2p.
	BytesPerSecond int64
	Agent          string
	Log            *slog.Logger
}

// callTimeout is how long a peer may take to give the genesis.
const callTimeout = 30 * time.Second

// Run relays until ctx ends. It tells ready the join link of each run once it listens.
func Run(ctx context.Context, cfg Config, ready func(joinlink.Link)) error {
	if len(cfg.Runs) == 0 {
		return errors.New("relay: no run is named; pass a join link of each")
	}
	if cfg.Profile == "" {
		cfg.Profile = p2p.WAN
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records := p2p.NewRecords() // members of any run find each other at any of the hosts
	for i, link := range cfg.Runs {
		if i > 0 {
			cfg.Listen, cfg.Web = nil, false
		}
		s, err := open(cfg, link, p2p.DefaultPort+i, records)
		if err != nil {
			return fmt.Errorf("relay for run %v: %w", link.Run, err)
		}
		wg.Go(func() { s.serve(ctx) })
		own := joinlink.Short(link.Run, s.host.Addrs(), nil)
		if link.Invite != nil && link.Invite.Secret != nil {
			own.Invite = link.Invite
		}
		ready(own)
	}
	<-ctx.Done()
	return nil
}

// server is a relay's part in one run.
type server struct {
	run  wire.RunID
	key  ed25519.PrivateKey
	host *p2p.Host
	log  *slog.Logger
	work sync.WaitGroup

	members *member.Table // nil in a run that is open to everybody
	files   files         // that remember them

	asking atomic.Bool // for a certificate: one at a time, as heartbeats come again
	gate   *messagegate.Gate
	began  time.Time

	mu      sync.Mutex
	own     hello.Record
	signed  hello.Signed
	name    string
	named   hello.Signed                 // with the name, for members
	records map[wire.PeerID]hello.Signed // of the peers that are connected
	genesis []byte                       // nil until a peer gave it
}

func open(cfg Config, link joinlink.Link, port int, records *p2p.Records) (*server, error) {
	run, now := link.Run, time.Now().UnixMilli()
	s := &server{run: run, key: cfg.Key, name: cfg.Name, began: time.Now(), log: cfg.Log, records: map[wire.PeerID]hello.Signed{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.own = hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: uint64(now), Role: hello.Observer, Precision: "f32",
		Agent: cfg.Agent, StartedMs: now, Stateless: true,
	}
	if err := s.beAdmitted(cfg.Dir, link.Invite); err != nil {
		return nil, err
	}
	s.gate = messagegate.New(run, s.members)
	if err := s.recall(); err != nil {
		return nil, err
	}
	if err := s.sign(p2p.Addresses{Public: true}); err != nil {
		return nil, err
	}
	var err error
	s.host, err = p2p.New(p2p.Config{
		Key: cfg.Key, Run: run, Listen: cfg.Listen, Profile: cfg.Profile, Record: s.record, Agent: cfg.Agent, Log: cfg.Log,
		RelayBytesPerSecond: cfg.BytesPerSecond, Public: true, NoMDNS: true, Port: port, Web: cfg.Web, Records: records,
		Check: s.check, Spares: s.spares, Admit: s.admits,
	})
	if err != nil {
		return nil, err
	}
	s.host.Handle(s.answer)
	return s, s.sign(s.host.Reach())
}

// check is Config.Check of the host.
func (s *server) check(from wire.PeerID, raw []byte) error {
	return s.gate.Check(time.Since(s.began).Milliseconds(), from, raw)
}

// spares is Config.Spares of the host.
func (s *server) spares(from wire.PeerID, raw []byte) error {
	return s.gate.Spares(time.Since(s.began).Milliseconds(), from, raw)
}

// begin gives the document to others from now on, and follows it.
func (s *server) begin(document []byte) {
	s.mu.Lock()
	s.genesis = document
	s.mu.Unlock()
	s.follow(document)
}

// follow has gossip and admission keep to what genesis says. Rounds are not known here, so deltas have no bound, and
// heartbeats have theirs.
func (s *server) follow(document []byte) {
	var g struct {
		Owners []wire.PeerID
	}
	if json.Unmarshal(document, &g) != nil {
		return
	}
	if err := s.confirm(g.Owners); err != nil {
		s.log.Error("the invite of this relay does not fit the run", "err", err)
	}
	// Several peers may give the document at once; what was counted since the first one stays.
	s.gate.Limiter.CompareAndSwap(nil, messagegate.NewLimiter(gossip.Config{Self: wire.PeerIDOf(s.key), Run: s.run, Members: s.members}.Limits()))
}

func (s *server) record() hello.Signed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
}

// sign makes the record anew for these addresses.
func (s *server) sign(a p2p.Addresses) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.own
	r.Seq++
	r.Relays = a.Public
	r.Addrs = hello.FirstAddrs(a.Outside)
	signed, err := hello.Sign(s.key, r)
	if err != nil {
		return err
	}
	s.own, s.signed = r, signed
	if s.name != "" {
		s.named, err = hello.Sign(s.key, r.Called(s.name))
	}
	return err
}

// serve follows what happens until ctx ends.
func (s *server) serve(ctx context.Context) {
	defer s.work.Wait()
	defer func() {
		if err := s.host.Close(); err != nil {
			s.log.Warn("close", "err", err)
		}
	}()
	for {
		select {
		case e := <-s.host.Events():
			s.event(ctx, e)
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) event(ctx context.Context, e p2p.Event) {
	switch e := e.(type) {
	case p2p.PeerUp:
		s.log.Info("connected", "peer", e.ID, "addr", e.Addr)
		s.keep(e.ID, e.Signed, e.Record)
		if !e.Record.Visits {
			s.work.Go(func() {
				s.fetchGenesis(ctx, e.ID)
				s.fetchWords(ctx, e.ID)
			})
		}
	case p2p.RecordChanged:
		s.keep(e.ID, e.Signed, e.Record)
	case p2p.Message:
		s.heard(e)
	case p2p.Stranger:
		s.fetchCertificates(ctx, e)
	case p2p.PeerDown:
		s.log.Info("gone", "peer", e.ID)
		s.mu.Lock()
		delete(s.records, e.ID)
		s.mu.Unlock()
	case p2p.Addresses:
		if err := s.sign(e); err != nil {
			s.log.Error("sign the record with new addresses", "err", err)
			return
		}
		s.host.Renew()
	default: // a relay has no rounds
	}
}

// keep remembers a record that may be passed on.
func (s *server) keep(id wire.PeerID, signed hello.Signed, r hello.Record) {
	if r.Near || r.Visits || r.Name != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[id] = signed
}

// fetchGenesis asks a peer for the document, unless it is here.
func (s *server) fetchGenesis(ctx context.Context, from wire.PeerID) {
	if s.document() != nil {
		return
	}
	raw, err := s.ask(ctx, from, wire.Request{Kind: wire.GetGenesis, Run: s.run})
	if err == nil {
		err = wire.CheckGenesis(s.run, raw)
	}
	if err != nil {
		s.log.Info("no genesis from this peer", "peer", from, "err", err)
		return
	}
	s.accept(raw)
}

// ask makes a request of a peer, and returns the body of its answer.
func (s *server) ask(ctx context.Context, from wire.PeerID, request wire.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := s.host.Call(ctx, from, request.Encode(), request.Kind.MaxResponse())
	if err != nil {
		return nil, err
	}
	return wire.OpenResponse(raw, request.Kind.MaxResponse())
}

// accept begins with a document that a peer gave. If one was remembered and lost, files have members by owners that nobody
// here knew since.
func (s *server) accept(document []byte) {
	s.begin(document)
	s.keepGenesis(document)
	if err := s.recallNames(); err != nil {
		s.log.Error("recall who takes part", "err", err)
	}
}

// fetchCertificates asks the peer that forwarded something of an author for what admits that one. Its
// next heartbeat passes.
func (s *server) fetchCertificates(ctx context.Context, e p2p.Stranger) {
	if !s.asking.CompareAndSwap(false, true) {
		return
	}
	s.work.Go(func() {
		defer s.asking.Store(false)
		raw, err := s.ask(ctx, e.From, e.Request())
		var list [][]byte
		if err == nil {
			list, err = wire.DecodeCertificates(raw)
		}
		for _, b := range list {
			c, wrong := member.Parse(b)
			if wrong == nil && c.Author == e.Author {
				wrong = s.know(c)
			}
			err = errors.Join(err, wrong)
		}
		if err != nil {
			s.log.Info("no certificate from this peer", "peer", e.From, "of", e.Author, "err", err)
		}
	})
}

func (s *server) document() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.genesis
}

// answer answers requests. A relay knows who is there and the genesis, and of no deltas.
func (s *server) answer(_ context.Context, from wire.PeerID, request []byte) []byte {
	r, err := wire.DecodeRequest(request)
	if err != nil {
		return wire.Response{Status: wire.Refused}.Encode()
	}
	switch r.Kind {
	case wire.GetPeerList:
		return wire.Found(s.peerList(from))
	case wire.GetCertificates:
		return wire.Found(s.members.Answer(r))
	case wire.GetOwn:
		return wire.Found(wire.EncodeHeaders(nil))
	case wire.GetGenesis:
		if doc := s.document(); doc != nil && r.Run == s.run {
			return wire.Found(doc)
		}
	}
	return wire.Response{Status: wire.NotFound}.Encode()
}

// peerList is the own record and those of the connected peers, without the asker's, and the owners' words.
func (s *server) peerList(asker wire.PeerID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]wire.PeerID, 0, len(s.records))
	for id := range s.records {
		if id != asker {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, wire.PeerID.Compare)
	records := [][]byte{s.signed.Encode()}
	if s.name != "" && s.members.Member(asker) && !s.members.Guest(asker) {
		records = append(records, s.named.Encode())
	}
	for _, id := range ids[:min(len(ids), wire.MaxPeerList-len(records))] {
		records = append(records, s.records[id].Encode())
	}
	return wire.PeerList{Records: records, Words: s.members.EncodedWords()}.Encode()
}
