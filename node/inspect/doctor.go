package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
)

// Finding is one thing that Doctor looked at.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"` // false: something has to be done
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// How others reach a node, as far as a check can tell.
const (
	ReachOpen    = "open"    // they connect to it by themselves
	ReachHelped  = "helped"  // through relays, or by punching holes
	ReachNear    = "near"    // from its own machine or network
	ReachNobody  = "nobody"  // it has no address
	ReachUnknown = "unknown" // it does not run, or nobody could be asked
)

// Checkup is what Doctor found out about a node's folder and its machine.
type Checkup struct {
	Dir      string    `json:"dir,omitempty"`
	Running  bool      `json:"running"`         // a node runs on the folder
	OK       bool      `json:"ok"`              // all findings are
	Reach    string    `json:"reach,omitempty"` // how others reach the node: see the constants; none where the check is of no node
	Findings []Finding `json:"findings"`

	Labels status.Labels `json:"-"` // of the machines that findings call by their ids
}

// CheckupOf is what findings about no folder come to.
func CheckupOf(findings []Finding) Checkup {
	return Checkup{OK: !slices.ContainsFunc(findings, func(f Finding) bool { return !f.OK }), Findings: findings}
}

// doctor collects findings.
type doctor struct {
	ctx      context.Context
	dir      string
	fix      bool
	learner  string // program that trains, "" for none
	now      time.Time
	genesis  genesis.Genesis
	run      wire.RunID
	snapshot status.Snapshot // of the running node
	starting bool            // a node is about to run
	Checkup
}

// Doctor looks at a node's folder and at the machine that it is on: whether a
// node can run there, how fast, and whether peers can reach it. The node may be
// running. With fix a damaged index is set aside (see store.SetAside), and damaged segments
// are; nothing else is changed. learner is a program to train with, "" for what the node had before. The error
// says that there was nothing to look at.
func Doctor(ctx context.Context, dir string, fix bool, learner string) (Checkup, error) {
	d := &doctor{ctx: ctx, dir: dir, fix: fix, learner: learner, now: time.Now(), Checkup: Checkup{Dir: dir, OK: true, Reach: ReachUnknown}}
	var err error
	if d.genesis, err = FolderGenesis(dir); errors.Is(err, ErrNoNodeFolder) {
		return Checkup{}, err
	}
	d.askNode()
	d.checkLast()
	d.checkKey()
	d.checkDisk()
	d.checkLearner()
	if err != nil {
		d.bad("genesis", err.Error(), "start the node once with its join link, so that a peer gives the genesis again, or copy the file from another node of the run")
		return d.Checkup, nil
	}
	d.run = d.genesis.RunID()
	d.good("genesis", fmt.Sprintf("run %v, %s (%s, %s)", d.run, d.genesis.Name, d.genesis.ModelLabel(), d.genesis.Inner.Optimizer))
	if d.checkIndex() {
		d.checkSegments()
		d.checkLedger()
	}
	d.checkSteps()
	d.checkClock()
	d.checkSpace()
	d.checkMemory()
	d.checkSpeed()
	d.checkNetwork()
	return d.Checkup, nil
}

func (d *doctor) good(name, text string) {
	d.Findings = append(d.Findings, Finding{Name: name, OK: true, Text: text})
}

func (d *doctor) bad(name, text, remedy string) {
	d.OK = false
	d.Findings = append(d.Findings, Finding{Name: name, Text: text, Remedy: remedy})
}

// doctorPatience is how long a node on this machine may take to answer.
const doctorPatience = 5 * time.Second

// askNode finds out whether a node runs on the folder, and what it says.
func (d *doctor) askNode() {
	client, err := status.Dial(d.dir)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, doctorPatience)
	defer cancel()
	if d.snapshot, err = client.Snapshot(ctx); errors.Is(err, status.ErrStarting) {
		d.starting = true
		d.bad("node", err.Error(), "wait until it has what it starts with, then ask again")
	} else if err == nil {
		d.Running, d.Labels = true, status.LabelsOf(d.snapshot.Peers)
		d.good("node", fmt.Sprintf("runs since %s, %s", d.snapshot.Started.Format(time.DateTime), d.snapshot.Condition().Text()))
		d.tellAlarms("")
		d.checkPause()
	}
}

// tellAlarms passes on what all screens warn of.
func (d *doctor) tellAlarms(when string) {
	for _, a := range d.snapshot.Alarms {
		d.bad(a.Kind, when+"since "+a.Since.Format(time.DateTime)+": "+a.Text, a.Remedy)
	}
}

func (d *doctor) checkPause() {
	l, dir := d.snapshot.Limits, status.ShellWord(d.dir)
	switch {
	case len(l.Why) == 0:
	case l.Asked:
		d.bad("paused", "the node does nothing: "+strings.Join(l.Why, "; "), fmt.Sprintf("`atoll resume %s` lets it go on", dir))
	default:
		d.bad("paused", "the node does nothing: "+strings.Join(l.Why, "; "), fmt.Sprintf("wait for that, or change its limits with `atoll set %s`", dir))
	}
}

// checkLast tells of what a node that was here last warned of, as far as only a run shows that. What a disk is like shows now.
func (d *doctor) checkLast() {
	last, err := status.ReadFinal(d.dir)
	if d.Running || d.starting || err != nil {
		return
	}
	last.Alarms = slices.DeleteFunc(last.Alarms, func(a status.Alarm) bool {
		return a.Kind == status.AlarmSilent || a.Kind == status.CutOff || a.Kind == status.AlarmDisk || a.Kind == status.Revoked
	})
	d.snapshot, d.Labels = last, status.LabelsOf(last.Peers)
	d.tellAlarms("when it ran last, until " + last.At.Format(time.DateTime) + ", ")
	d.snapshot = status.Snapshot{}
}

func (d *doctor) checkKey() {
	key, err := store.ReadKey(d.dir)
	if errors.Is(err, fs.ErrPermission) {
		d.bad("key", err.Error(), "run this as the user that started the node")
		return
	}
	if store.IsFresh(d.dir) {
		d.good("key", fmt.Sprintf("none yet: the first `atoll join %s` makes one", d.dir))
		return
	}
	if err != nil {
		d.bad("key", err.Error(), "restore the key file from a backup with `atoll key --import`, and let only its owner read it")
		return
	}
	d.good("key", fmt.Sprintf("node %v, readable by its owner only", wire.PeerIDOf(key)))
}

func (d *doctor) checkDisk() {
	err := store.Disk{}.Probe(d.dir)
	if err == nil {
		d.good("disk", "takes what is written and synced")
		return
	}
	d.bad("disk", err.Error(), store.TroubleOf(err).Remedy(d.dir))
}

// checkIndex says whether the index can be read now.
func (d *doctor) checkIndex() bool {
	if d.starting {
		return false // it has it, or is about to
	}
	if d.Running {
		d.good("index", "open by the running node, which checked it at its start")
		return false
	}
	err := store.Check(d.dir)
	switch {
	case err == nil:
		d.good("index", "every entry can be found and matches its checksum")
		return true
	case errors.Is(err, store.ErrNotFound):
		d.good("index", "none yet: no node has run here")
	case errors.Is(err, store.ErrLocked):
		d.bad("index", err.Error(), "wait until the process that starts or stops on this folder is done, then ask again")
	case errors.Is(err, store.ErrIndex):
		d.fixIndex(err)
	default:
		d.bad("index", err.Error(), store.TroubleOf(err).Remedy(d.dir))
	}
	return false
}

func (d *doctor) fixIndex(damage error) {
	if damaged := (*store.IndexError)(nil); errors.As(damage, &damaged) {
		damage = damaged.Why // the rest is the remedy below
	}
	if !d.fix {
		d.bad("index", fmt.Sprintf("is damaged: %v", damage), fmt.Sprintf("run `atoll doctor %s --fix`: it sets the index aside, and the node takes the run from its peers again with the key it has", d.dir))
		return
	}
	aside, err := store.SetAside(d.dir, d.now)
	if err != nil {
		d.bad("index", err.Error(), "move index.db, deltas, bases and segments out of the folder by hand; keep key and genesis")
		return
	}
	d.good("index", fmt.Sprintf("was damaged and is set aside in %s: start the node with its join link; remove that folder once the node has joined", aside))
}

// checkSegments reads the headers and records of old rounds.
func (d *doctor) checkSegments() {
	f, err := openFolder(d.dir)
	if err != nil {
		return // checkLedger says so
	}
	whole, damaged, err := f.store.CheckSegments()
	err = errors.Join(err, f.close())
	switch {
	case err != nil:
		d.bad("segments", err.Error(), d.ledgerRemedy(err))
	case len(damaged) > 0 && d.fix:
		d.fixSegments()
	case len(damaged) > 0:
		d.bad("segments", fmt.Sprintf("%d of %d files with headers of old rounds are damaged, the first: %v", len(damaged), whole+len(damaged), damaged[0]),
			fmt.Sprintf("run `atoll doctor %s --fix`: it sets them aside, and the node goes on without these headers; then check the disk", d.dir))
	case whole > 0:
		d.good("segments", fmt.Sprintf("%d files with headers of old rounds are whole", whole))
	}
}

func (d *doctor) fixSegments() {
	s, err := store.Open(d.dir, d.run)
	if err != nil {
		d.bad("segments", err.Error(), d.ledgerRemedy(err))
		return
	}
	aside, moved, err := s.SetSegmentsAside(d.now)
	if err = errors.Join(err, s.Close()); err != nil {
		d.bad("segments", err.Error(), d.ledgerRemedy(err))
		return
	}
	d.good("segments", fmt.Sprintf("%d were damaged and are set aside in %s: the node goes on without the headers of these rounds, and `atoll verify` names them; check the disk", moved, aside))
}

// ledgerRemedy is for a ledger that cannot even be listed. A remedy for the disk
// goes first.
func (d *doctor) ledgerRemedy(err error) string {
	if remedy := store.TroubleOf(err).Remedy(d.dir); remedy != "" {
		return remedy
	}
	return "do what it says; if that does not help, move index.db, deltas, bases and segments out of the folder, keep the key, and start the node with its join link: it takes the run from its peers again"
}

// checkLedger reads the payloads and bases that a restart or a peer may ask for.
func (d *doctor) checkLedger() {
	f, err := openFolder(d.dir)
	if err != nil {
		d.bad("ledger", err.Error(), d.ledgerRemedy(err))
		return
	}
	defer f.close()
	d.checkRevoked(f)
	var payloads, bases int
	var damaged []error
	for p := range f.plan {
		n, err := f.readBases(p, &damaged)
		bases += n
		if err == nil {
			n, err = f.readWindow(p, &damaged)
			payloads += n
		}
		if err != nil {
			d.bad("ledger", err.Error(), d.ledgerRemedy(err))
			return
		}
	}
	if len(damaged) > 0 {
		d.bad("ledger", fmt.Sprintf("%d files are damaged, the first: %v", len(damaged), damaged[0]),
			"start the node with its join link: it fetches or computes again what it can; then check the disk")
		return
	}
	d.good("ledger", fmt.Sprintf("%d payloads of the last rounds and %d kept states are whole; `atoll verify %s` replays all of it", payloads, bases, d.dir))
}

// checkRevoked tells whether an owner of the run revoked the node, as far as its folder knows.
func (d *doctor) checkRevoked(f *folder) {
	key, err := store.ReadKey(d.dir)
	if err != nil {
		return // checkKey says so
	}
	if word, out := f.members.OutBy(wire.PeerIDOf(key)); out {
		d.bad(status.Revoked, "an owner of the run has revoked this node or its invite, "+word, status.RevokedRemedy)
	}
}

// readBases reads all kept bases of a fragment.
func (f *folder) readBases(p int, damaged *[]error) (int, error) {
	rounds, err := f.store.Bases(p)
	for _, round := range rounds {
		if _, err := f.store.Base(p, round); err != nil {
			*damaged = append(*damaged, err)
		}
	}
	return len(rounds), err
}

// readWindow reads the payloads of a fragment's union window.
func (f *folder) readWindow(p int, damaged *[]error) (n int, err error) {
	last, err := f.store.LastRound(p)
	if err != nil {
		return 0, err
	}
	from := last - min(last, f.genesis.Outer.Window)
	err = f.store.Held(p, from, store.MaxRound, func(id wire.Digest, _ wire.SignedHeader) error {
		n++
		if _, err := f.store.Payload(id); err != nil {
			*damaged = append(*damaged, err)
		}
		return nil
	})
	return n, err
}

func (d *doctor) checkSteps() {
	sum, err := store.SumSteps(d.dir)
	switch {
	case err != nil:
		d.bad("step log", err.Error(), store.TroubleOf(err).Remedy(d.dir))
	case sum.Damaged > 0:
		d.bad("step log", fmt.Sprintf("%d of %d records are damaged", sum.Damaged, sum.Steps+sum.Damaged), "only the count of these steps is lost; check the disk")
	default:
		d.good("step log", fmt.Sprintf("%d steps, %d tokens", sum.Steps, sum.Tokens))
	}
}

// clockSlack is how far a clock may be off without harm: rounds are delayed by
// it, nothing more.
const clockSlack = time.Minute

// checkClock compares this machine's clock with what is known to be in the past.
func (d *doctor) checkClock() {
	past, what := time.UnixMilli(d.genesis.Outer.CreatedMs), "the run was made"
	if sum, err := store.SumSteps(d.dir); err == nil && sum.Last.EndMs > past.UnixMilli() {
		past, what = time.UnixMilli(sum.Last.EndMs), "this node's last step ended"
	}
	if ahead := past.Sub(d.now); ahead > clockSlack {
		d.bad("clock", fmt.Sprintf("%s %v in the future, at %s", what, ahead.Round(time.Second), past.Format(time.DateTime)), "set this machine's clock, best by NTP")
		return
	}
	d.good("clock", fmt.Sprintf("%s fits: %s at %s", d.now.Format(time.DateTime), what, past.Format(time.DateTime)))
}
