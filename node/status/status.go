package status

import (
	"time"
)

// FinalFile is the last status of a node, in its folder.
const FinalFile = "status.json"

// Snapshot is a node's view of itself and of the whole run at one moment.
// Absent numbers mean not measured, never zero in their place. The parts are for
// readers of this code: in JSON all their fields are the snapshot's own, in this
// order.
type Snapshot struct {
	Identity
	Progress
	Agreement

	Plan      Plan        `json:"plan"`
	Fragments []Fragment  `json:"fragments"`
	Peers     []Peer      `json:"peers"` // this node first
	Account   Account     `json:"account"`
	Time      TimeAccount `json:"time"`
	Net       Net         `json:"net"`
	JoinS     float64     `json:"join_s,omitempty"` // process start to own first folded delta
	Limits    Limits      `json:"limits,omitzero"`
	Settings  []Setting   `json:"settings,omitempty"` // that are not the default, in the order of atoll join --help
	Data      *Data       `json:"data,omitempty"`     // of a run on a corpus in shards
	Rejoined  bool        `json:"rejoined"`           // this process began from a folder with state in it
	Alarms    []Alarm     `json:"alarms,omitempty"`   // what is wrong, newest first
	Events    []Event     `json:"events"`             // newest last, bounded
	History   []Point     `json:"history,omitempty"`  // oldest first, bounded

	Process
}

// Setting is what one flag of atoll join has a node do.
type Setting struct {
	Name  string `json:"name"`  // of the flag, without dashes
	Value string `json:"value"` // as it is typed
	From  string `json:"from"`  // where the node found it, for people
}

// Identity says which node of which run this is, and what it does.
type Identity struct {
	Version string    `json:"version"`
	Run     string    `json:"run"`               // RunID, hex
	Name    string    `json:"name"`              // of the run
	Link    string    `json:"link"`              // join link that names this node
	LetsIn  string    `json:"lets_in,omitempty"` // whom the link lets in, or what it lacks; "" in a run that is open
	Self    string    `json:"self"`              // peer id, hex
	Role    string    `json:"role"`              // learner or observer
	State   string    `json:"state"`
	Stage   string    `json:"stage,omitempty"` // while joining: what it does and how far it is; at the end: what it waits for
	Disk    string    `json:"disk,omitempty"`  // what is wrong with its disk: full, read-only...
	Started time.Time `json:"started"`
	At      time.Time `json:"at"`
}

// Data is what a node has of the run's corpus.
type Data struct {
	Corpus       string `json:"corpus"`
	Needed       int    `json:"needed"`            // shards: held-out ones, the learner's window, and the next
	Missing      int    `json:"missing,omitempty"` // of these
	MissingBytes int64  `json:"missing_bytes,omitempty"`
	Next         string `json:"next,omitempty"`        // the missing one that is needed first, for people
	Waiting      bool   `json:"waiting,omitempty"`     // the learner has a step that waits for one
	UsedBytes    int64  `json:"used_bytes"`            // of shards that were fetched
	LimitBytes   int64  `json:"limit_bytes,omitempty"` // for these; 0 = any
}

// Progress is how far the run and this node are.
type Progress struct {
	Model         string  `json:"model"`
	Brought       bool    `json:"brought,omitempty"` // somebody's model, which only learners know
	Params        int     `json:"params"`
	Optimizer     string  `json:"optimizer,omitempty"` // inner, of all learners
	BudgetTokens  uint64  `json:"budget_tokens"`
	TokensFolded  uint64  `json:"tokens_folded"`
	TokensBeyond  uint64  `json:"tokens_not_counted,omitempty"` // folded, and no part of the budget: those of guests, and what is far over the usual in a round
	TokensPerS    float64 `json:"tokens_per_s,omitempty"`       // of the whole run, folded, averaged over the last minute
	ETASeconds    float64 `json:"eta_s,omitempty"`              // at the speeds of those that are here and count
	LastDeltasS   float64 `json:"last_deltas_s,omitempty"`      // since the last own step, until all that was made was published and folded
	Step          int64   `json:"step"`
	TokensTrained uint64  `json:"tokens_trained"` // by this node, from its step log
	TrainLoss     float64 `json:"train_loss,omitempty"`
	ValBPB        float64 `json:"val_bpb,omitempty"` // newest global parameters on ValBytes held-out bytes
	ValBytes      int     `json:"val_bytes,omitempty"`
	ValLoss       float64 `json:"val_loss,omitempty"` // in place of ValBPB where tokens are no bytes: nats a token, on ValTokens of them
	ValTokens     int     `json:"val_tokens,omitempty"`
	ValAtTokens   uint64  `json:"val_at_tokens,omitempty"` // tokens folded by the global parameters that these are of
	LearningRate  float64 `json:"learning_rate,omitempty"`
}

// Agreement is what this node holds, and whether others hold the same.
type Agreement struct {
	ChainDigest string `json:"chain_digest"` // over all fragments at their closed rounds
	StateDigest string `json:"state_digest"`
	Agreed      bool   `json:"agreed"`   // every live peer's newest heartbeat shows the same digests
	Finished    bool   `json:"finished"` // the run is over and this state is its model
}

// Plan is how many inner steps this node's deltas have.
type Plan struct {
	H       int     `json:"h"`              // of the run
	Planned int     `json:"planned"`        // what the links carry, at least H
	Real    float64 `json:"real,omitempty"` // of the last deltas, on average
	Bound   string  `json:"bound"`          // what sets it: see the constants
}

// What sets the planned steps of a delta.
const (
	BoundRun     = "run"      // the run's H: links have room
	BoundLinks   = "links"    // the links of all nodes together
	BoundOwnLink = "own link" // this node's link, which is thinner than those of the others
	BoundThin    = "too thin" // links do not carry the run's deltas, however rare they are
)

// Paused is the state of a node that its owner has paused, whatever its heartbeats say beside.
const Paused = "paused"

// Limits are what the owner of this node lets it cost.
type Limits struct {
	Asked     bool     `json:"asked,omitempty"`   // it was asked to pause, by atoll pause
	Why       []string `json:"why,omitempty"`     // it is paused; none if it is not
	Resting   bool     `json:"resting,omitempty"` // it is paused, and has published what it had
	UpPerS    float64  `json:"up_bytes_per_s,omitempty"`
	DownPerS  float64  `json:"down_bytes_per_s,omitempty"`
	Hours     string   `json:"hours,omitempty"`      // when it may work
	OnBattery string   `json:"on_battery,omitempty"` // what it does then: pause, or "" for go on
	Quota     *Quota   `json:"quota,omitempty"`
}

// Quota is how much this node may send and receive.
type Quota struct {
	Bytes  uint64    `json:"bytes"`
	Period string    `json:"period"` // month or day
	Used   uint64    `json:"used_bytes"`
	Left   uint64    `json:"left_bytes"`
	Ends   time.Time `json:"ends"` // of the period
}

// Process is what the operating system says of the process.
type Process struct {
	RSSBytes   uint64 `json:"rss_bytes,omitempty"`
	Goroutines int    `json:"goroutines,omitempty"`
	OpenFiles  int    `json:"open_files,omitempty"` // descriptors of the process, sockets included
}

// Fragment is the round state of one fragment.
type Fragment struct {
	Closed       uint32 `json:"closed"`
	TipRound     uint32 `json:"tip_round"`
	Tokens       uint64 `json:"tokens"`
	Params       int    `json:"params"`
	Contributors int    `json:"contributors"` // of the last closed round
	EndRound     uint32 `json:"end_round,omitempty"`
	Unpublished  uint64 `json:"unpublished"` // own tokens
	Open         Open   `json:"open,omitzero"`

	// Chains are the chain digests after the last rounds, oldest first: nodes
	// whose closed rounds differ a little are compared there.
	Chains []ChainAt `json:"chains,omitempty"`
}

// Open is what the open round of a fragment waits for.
type Open struct {
	Round   uint32  `json:"round"`
	Why     string  `json:"why"`                // a word of the table closes of gossip/wire/SPEC.md
	Text    string  `json:"text"`               // the same for people
	For     string  `json:"for,omitempty"`      // whose delta is missing: a peer id, hex
	WaitedS float64 `json:"waited_s,omitempty"` // since it was proposed
	MostS   float64 `json:"most_s,omitempty"`   // for how long after that it waits at most
}

// MeanTokens is the mean of tokens per fragment, by the fragments' parameters: each step's tokens
// appear in every fragment and count once.
func MeanTokens(fragments []Fragment, tokens []uint64) float64 {
	var sum, params float64
	for p, n := range tokens[:min(len(tokens), len(fragments))] {
		sum += float64(n) * float64(fragments[p].Params)
		params += float64(fragments[p].Params)
	}
	if params == 0 {
		return 0
	}
	return sum / params
}

// ChainAt is what the chain of a fragment was after a round.
type ChainAt struct {
	Round  uint32 `json:"round"`
	Digest string `json:"digest"` // hex
}

// Peer is one node of the run, as this node sees it.
type Peer struct {
	ID            string  `json:"id"`
	Name          string  `json:"name,omitempty"`  // that its owner gave it; "" = this node knows none
	Label         string  `json:"label,omitempty"` // the name, told apart from those of others, see Label
	Self          bool    `json:"self,omitempty"`
	Guest         bool    `json:"guest,omitempty"` // it came by invites for guests alone
	Role          string  `json:"role"`
	State         string  `json:"state"`             // see Known
	Trained       bool    `json:"trained,omitempty"` // something that it made is folded
	Faded         bool    `json:"faded,omitempty"`   // it is away for long: lists leave it out
	Hardware      string  `json:"hardware"`
	Trainer       string  `json:"trainer"`
	Precision     string  `json:"precision"`
	Addr          string  `json:"addr,omitempty"`
	Steps         uint64  `json:"steps"`
	Tokens        uint64  `json:"tokens"`
	TokensPerS    float64 `json:"tokens_per_s,omitempty"`   // as its heartbeats say
	MeasuredPerS  float64 `json:"measured_per_s,omitempty"` // what its capability record claims
	TokensPerStep uint64  `json:"tokens_per_step,omitempty"`
	Bits          float64 `json:"bits,omitempty"`                    // what its heartbeats say of the model on held-out text: per byte, or per token where tokens are no bytes
	TokensFolded  float64 `json:"tokens_folded"`                     // that count, by the ledger, fragment-weighted; none of a guest
	Share         float64 `json:"share"`                             // of all folded tokens
	ShareUnknown  bool    `json:"share_unknown,omitempty"`           // this node joins: it knows neither shares nor what is folded
	Weight        float64 `json:"weight,omitempty"`                  // mean share of the merge weight over the last rounds
	Trust         float64 `json:"trust"`                             // part of its weight for which it counts, by what its deltas have in common with others' recently
	LagS          float64 `json:"lag_s,omitempty"`                   // since it was last heard
	HeartbeatGapS float64 `json:"longest_heartbeat_gap_s,omitempty"` // between two of its heartbeats that came here one after the other
	Upload        float64 `json:"upload_bytes_per_s,omitempty"`      // the most that its link was seen to carry recently, by itself
	UploadFull    bool    `json:"upload_full,omitempty"`             // it carries no more than that
	SentBytes     uint64  `json:"sent_bytes,omitempty"`              // by this node to it, since this node's process began
	ReceivedBytes uint64  `json:"received_bytes,omitempty"`          // by this node from it; what a third node passes on is that node's
	Reason        string  `json:"reason,omitempty"`                  // why it is refused or gone; of this node, why it is paused
	Link          string  `json:"link,omitempty"`                    // how it is reached, if it is connected: see the constants
	Relay         string  `json:"relay,omitempty"`                   // through whom: a peer id, hex
}

// How a connected peer is reached.
const (
	LinkDirect   = "direct"
	LinkRelayed  = "relayed"  // through another node
	LinkPunching = "punching" // the same, and a direct connection is being tried
)

// Reach is how others reach this node.
type Reach struct {
	Public       bool     `json:"public"`                  // they get in by themselves
	Outside      []string `json:"outside"`                 // addresses for everybody, through relays where need be
	Near         []string `json:"near"`                    // addresses for this node's own network
	RelayedBytes uint64   `json:"relayed_bytes,omitempty"` // that passed through this node between others
}

// Account is where this node's deltas and tokens went, and what it holds of
// the others'. Tokens are fragment-weighted means unless they say otherwise.
type Account struct {
	Rounds         uint64   `json:"rounds"` // closed, all fragments
	Deltas         uint64   `json:"deltas"` // folded in the chain held
	Late           uint64   `json:"late"`   // held after their round had closed here
	Refused        uint64   `json:"refused"`
	OwnFolded      []uint64 `json:"own_folded_tokens"`      // per fragment, also where they count for none, as a guest's
	OwnInFlight    []uint64 `json:"own_in_flight_tokens"`   // per fragment
	OwnUnpublished []uint64 `json:"own_unpublished_tokens"` // per fragment
	OwnReturned    []uint64 `json:"own_returned_tokens"`    // per fragment, counted as unpublished again
	OwnDiscarded   []uint64 `json:"own_discarded_tokens"`   // per fragment, by this process, as those below
	OwnLostHere    []uint64 `json:"own_lost_here_tokens"`   // per fragment: unpublished work that went with damaged memory, a learner, or a long absence
	OwnLostBefore  []uint64 `json:"own_lost_before_tokens"` // per fragment: earlier processes trained them, and they are nowhere
	PayloadBytes   uint64   `json:"payload_bytes"`          // payload bytes received, in any form
	PayloadHeld    uint64   `json:"payload_held_bytes"`     // sizes of the others' deltas held
}

// TimeAccount is where the training thread's wall time went, in seconds. The
// columns add up to Total: Waiting is what no other explains, so it is a bound on
// the time that the thread can have waited for a peer, a disk or the loop.
type TimeAccount struct {
	Step     float64 `json:"step_s"`
	Paced    float64 `json:"paced_s"`   // asleep to keep the pace asked for
	Publish  float64 `json:"publish_s"` // copying and encoding own progress
	Adopt    float64 `json:"adopt_s"`
	Save     float64 `json:"save_s"`               // copying the inner optimizer's state for a checkpoint
	Evaluate float64 `json:"evaluate_s,omitempty"` // the program that trains said what the global parameters are worth
	Joining  float64 `json:"joining_s"`
	Ending   float64 `json:"ending_s"`                 // budget reached, nothing left to step
	Gone     float64 `json:"learner_gone_s,omitempty"` // the program that trains had to start again
	Data     float64 `json:"waiting_for_data_s,omitempty"`
	Paused   float64 `json:"paused_s,omitempty"` // by its owner
	Asleep   float64 `json:"asleep_s"`           // the whole process was: stopped by a signal, or with its machine
	Waiting  float64 `json:"waiting_on_peers_s"`
	Total    float64 `json:"total_s"`
}

// Net is this node's traffic, all transport streams together.
type Net struct {
	SentBytes     uint64            `json:"sent_bytes"`
	ReceivedBytes uint64            `json:"received_bytes"`
	UpPerS        float64           `json:"sent_bytes_per_s,omitempty"` // lately, without the model that a newcomer fetches
	DownPerS      float64           `json:"received_bytes_per_s,omitempty"`
	Dropped       uint64            `json:"dropped_messages"`
	ByProtocol    map[string]uint64 `json:"received_by_protocol,omitempty"`
	Reach         Reach             `json:"reach"`
}

// Event is something worth telling a person.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Peer string    `json:"peer,omitempty"`
	Text string    `json:"text"`

	Remedy string `json:"remedy,omitempty"` // what a person has to do: the event is an alarm
}

// Said is the text, with what to do.
func (e Event) Said() string {
	if e.Remedy == "" {
		return e.Text
	}
	return e.Text + "; do: " + e.Remedy
}
