package node

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/node/allowance"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/joinlink"
	"atoll/node/mirror"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus/shards"
)

// Config is what one process of a run is told. Everything that its peers must
// agree on is in the Genesis instead.
type Config struct {
	Dir     string        // the node's folder: key, ledger, checkpoints; created if missing
	Name    string        // of this machine, for members of the run; "" = none
	Genesis []byte        // canonical genesis bytes; nil = from Dir, or from the peers of Link
	Link    joinlink.Link // run and peers to join by; Run may be zero if Genesis is given

	Owner ed25519.PrivateKey // of the run's owner, with which the first node of a run admits itself; nil = none
	// Invite is what the link of this node carries, where its folder has none; nil = none, or a new one where Owner is
	Invite *member.Pass

	Listen  []string // multiaddrs to listen on; none = any port of every interface
	Profile string   // p2p profile: local, lan or wan
	Peers   []string // further addresses to dial
	NoMDNS  bool     // neither announce this node on its own network nor look for peers there

	Observe   bool             // hold and serve state without training
	Data      string           // corpus: a file, a folder, "" = the text that comes with atoll, or what peers give
	DataDisk  int64            // bytes that the shards which this node fetches may take; 0 = any
	Threads   int              // training threads; 0 = one per core
	Precision string           // of the built-in trainer, as trainer.Precisions reads it; "" = whichever is faster
	Batch     int              // rows per inner step; 0 = as planned from the measured speed
	Pace      time.Duration    // least time of an inner step; 0 = as fast as it goes
	Limits    allowance.Limits // what the node may cost
	Settings  []status.Setting // what people are told of all this; it changes nothing
	Stay      bool             // keep serving after the run has ended

	// KeepBytes bounds what payloads and bases take on disk. Payloads of final
	// rounds go, oldest first; a replay then begins at a kept base. What the union
	// window needs is always kept. 0 = keep all.
	KeepBytes int64

	Init string // file or folder of the run's initial values, for the first node of a run whose values are given

	// Export is a folder in which the model is written, in a folder of its own each time that
	// ExportEvery more tokens are folded. Empty = never.
	Export      string
	ExportEvery uint64

	// Learner is a command that trains, instead of the built-in trainer: see package external.
	Learner string

	Trace bool // write the life of every delta to trace.File in Dir

	JoinWithin time.Duration // give up when no peer of the link gives the genesis for so long
	AloneAfter time.Duration // train from genesis when no peer of the link answers for so long
	EvalBytes  int           // held-out bytes of a live evaluation; 0 = none
	EvalEvery  time.Duration // least time between two live evaluations

	// What a program puts into the node that it runs; nil = nothing.
	OnConn  func(net.Conn) (on net.Conn, run func()) // put onto TCP connections, below what secures them: see p2p.Config
	Trainer func(trainer.Trainer) trainer.Trainer    // put before what trains: steps go through it
	Started func(Handle) error                       // called before the loop begins, with what may be done to the node from then on

	Log      *slog.Logger          // nil = discard
	OnStatus func(status.Snapshot) // called from the loop about once a second; nil = none

	web         *http.Client                                      // nil = one for mirrors
	disk        store.Disk                                        // what tests make of the disk
	power       func(context.Context) (onBattery bool, err error) // nil = the machine's
	send        func(what string)                                 // told before anything is sent, unless nil: tests stop the node there
	measure     time.Duration                                     // how long it measures how fast it trains, 0 = trainer.MeasureFor: a test starts many nodes
	calm        int                                               // how many times its time an ordered leave may take besides: tests share a machine
	longText    int64                                             // bytes of a text that is read late, 0 = longText: tests have short ones
	window      shards.Window                                     // of a corpus that a learner reads from; zero = the run's: tests have few shards
	heartbeatMs int64                                             // shortest time between two heartbeats; 0 = as gossip.Config has it: runs of tests are over sooner
}

// addrs are the addresses to dial: first the link's, then further ones.
func (c Config) addrs() []string { return slices.Concat(c.Link.Peers, c.Peers) }

// sending is called before anything is sent.
func (n *node) sending(what string) {
	if n.cfg.send != nil {
		n.cfg.send(what)
	}
}

// Defaults for Config fields that are zero.
const (
	defaultJoinWithin = time.Minute // several rounds of dialling over bad links
	defaultAloneAfter = 10 * time.Second
	defaultEvalEvery  = 3 * time.Second
)

// withDefaults fills what is zero and checks the rest. The error names the field.
func (c Config) withDefaults() (Config, error) {
	if err := c.validate(); err != nil {
		return c, err
	}
	if c.JoinWithin == 0 {
		c.JoinWithin = defaultJoinWithin
	}
	if c.AloneAfter == 0 {
		c.AloneAfter = defaultAloneAfter
	}
	if c.EvalEvery == 0 {
		c.EvalEvery = defaultEvalEvery
	}
	if c.measure == 0 {
		c.measure = trainer.MeasureFor
	}
	if c.Profile == "" {
		c.Profile = "wan"
	}
	if c.power == nil {
		c.power = hardware.OnBattery
	}
	if c.Started == nil {
		c.Started = func(Handle) error { return nil }
	}
	if c.web == nil {
		c.web = mirror.Client()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// validate reports the first field that makes no sense, by name.
func (c Config) validate() error {
	if c.Dir == "" {
		return fmt.Errorf("config: Dir is empty; name the folder that the node keeps its state in")
	}
	if c.Name != "" {
		if err := hello.CheckName(c.Name); err != nil {
			return fmt.Errorf("config: Name %w", err)
		}
	}
	if c.Threads < 0 {
		return fmt.Errorf("config: Threads is %d; use 1 or more, or 0 for one per core", c.Threads)
	}
	if _, _, err := trainer.Precisions(c.Precision); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if c.Batch < 0 || c.Batch > genesis.MaxBatch {
		return fmt.Errorf("config: Batch is %d; use 1 to %d, or 0 to plan it from the measured speed", c.Batch, genesis.MaxBatch)
	}
	if c.KeepBytes < 0 {
		return fmt.Errorf("config: KeepBytes is %d; use the bytes that the ledger may take, or 0 to keep all", c.KeepBytes)
	}
	if c.DataDisk < 0 {
		return fmt.Errorf("config: DataDisk is %d; use the bytes that fetched shards may take, or 0 for any", c.DataDisk)
	}
	if c.Pace < 0 {
		return fmt.Errorf("config: Pace is %v; use a duration, or 0 for as fast as it goes", c.Pace)
	}
	if c.Limits.Up < 0 || c.Limits.Down < 0 {
		return fmt.Errorf("config: Limits are %d bytes/s up and %d down; use rates, or 0 for no limit", c.Limits.Up, c.Limits.Down)
	}
	if c.Export != "" && c.ExportEvery == 0 {
		return fmt.Errorf("config: ExportEvery is 0; use the tokens between two exports to %s", c.Export)
	}
	for _, addr := range c.addrs() {
		if err := joinlink.CheckPeer(addr); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	return nil
}
