package testnet

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"atoll/node/status"
	"atoll/node/trace"
)

// Report is what came of a world. Units are in the names; what was not measured
// is absent, never zero in its place. The parts are for readers of this code: in
// JSON all their fields are the report's own, in this order.
type Report struct {
	Setup
	Tokens
	Outcome
	Ledger
	Members
	Traffic
	Faults
	Digests

	Trace       *trace.Shares `json:"trace,omitempty"`
	Checks      []Check       `json:"checks"`
	Calibration Calibration   `json:"calibration"`
	NodesReport []NodeReport  `json:"nodes_report"`
}

// Setup is what the world was.
type Setup struct {
	Baseline  string `json:"arm"`
	Link      string `json:"link,omitempty"` // what links were made, as --link has it
	Nodes     int    `json:"nodes"`          // that started together
	Model     string `json:"model"`
	Params    int    `json:"params"`
	Optimizer string `json:"optimizer"` // of the learners
	Seed      uint64 `json:"seed"`
	Data      string `json:"data"`
	SHA256    string `json:"data_sha256"`
	Dir       string `json:"dir"`
	Run       string `json:"run"`
	Page      string `json:"page,omitempty"` // the report as a page

	DirBytes  uint64 `json:"dir_bytes"`     // of the files in Dir
	Temporary bool   `json:"dir_temporary"` // nobody chose Dir, so a reader may remove it
}

// Tokens says where they went: parameter-weighted means over the fragments of
// what the ledgers, step logs and last status of the nodes say. Trained = folded +
// discarded + lost here + unpublished + lost; returned tokens went on to be counted
// elsewhere.
type Tokens struct {
	TokensBudget      uint64 `json:"tokens_budget"`
	TokensTrained     uint64 `json:"tokens_trained"`
	TokensFolded      uint64 `json:"tokens_folded"`
	TokensReturned    uint64 `json:"tokens_returned"`
	TokensDiscarded   uint64 `json:"tokens_discarded"` // published, not in the chain
	TokensLostHere    uint64 `json:"tokens_lost_here"` // unpublished, with damaged memory, a learner that died or a long absence
	TokensUnpublished uint64 `json:"tokens_unpublished"`
	TokensLost        uint64 `json:"tokens_lost"`
}

// Outcome is the model, and what it took.
type Outcome struct {
	WallS      float64  `json:"wall_s"`                 // first process to the end of the run
	TokensPerS float64  `json:"tokens_per_s"`           // folded
	EndIdleS   *float64 `json:"end_idle_s,omitempty"`   // that a learner had nothing to step at the end, of who waited longest
	EndDeltasS *float64 `json:"end_deltas_s,omitempty"` // since its last step, until all that was made was published and folded
	ValBPB     *float64 `json:"val_bpb,omitempty"`
	ValBytes   int      `json:"val_bytes,omitempty"`  // held-out bytes that ValBPB is of
	TrainLoss  *float64 `json:"train_loss,omitempty"` // nats per token, mean over the learners that saw the end
	Progress   []Point  `json:"progress,omitempty"`
}

// Point is how far the run was at a moment.
type Point struct {
	AtS    float64 `json:"at_s"`   // since the first process started
	Tokens uint64  `json:"tokens"` // folded, as the node knew that had folded most
}

// Ledger is the account of rounds and deltas.
type Ledger struct {
	Rounds  uint64 `json:"rounds"` // closed, all fragments
	Deltas  uint64 `json:"deltas"` // folded
	Late    uint64 `json:"late"`   // held after their round had closed, all nodes
	Refused uint64 `json:"refused"`
}

// Members is what only a baseline has.
type Members struct {
	Steps   *uint64 `json:"steps,omitempty"`   // inner steps of every member in the model
	Views   *uint64 `json:"views,omitempty"`   // memberships, one after the other
	Overlap *bool   `json:"overlap,omitempty"` // dp: whether gradients were sent while others were still computed
}

// Traffic is what went over the network, and how much of the time it left to steps.
type Traffic struct {
	BytesSent     uint64   `json:"bytes_sent"`
	BytesReceived uint64   `json:"bytes_received"`
	PayloadBytes  uint64   `json:"payload_bytes,omitempty"` // received, in any form
	BytesPerToken float64  `json:"bytes_per_token"`
	Amplification *float64 `json:"payload_amplification,omitempty"`
	Goodput       *float64 `json:"goodput,omitempty"`
	GoodputUp     *float64 `json:"goodput_up,omitempty"`
	HeartbeatGapS float64  `json:"longest_heartbeat_gap_s,omitempty"` // between two heartbeats of a node as another heard them
}

// Faults is what befell the nodes, and how long they took to get over it.
type Faults struct {
	Joins       int `json:"joins"`
	Leaves      int `json:"leaves"`
	Kills       int `json:"kills"`
	Pauses      int `json:"pauses"`
	Links       int `json:"link_changes"`
	Partitions  int `json:"partitions"`
	Corruptions int `json:"corruptions"`
	Liars       int `json:"liars"`
	Learners    int `json:"learner_kills"` // of programs that train, or of one process of them

	JoinS    []float64 `json:"join_s,omitempty"`    // process start to own first folded delta
	RecoverS []float64 `json:"recover_s,omitempty"` // restart to the same
	WakeS    []float64 `json:"wake_s,omitempty"`    // end of a pause to the next own folded delta
	LearnerS []float64 `json:"learner_s,omitempty"` // kill of a program that trains until it trains again
	MergeS   []float64 `json:"heal_s,omitempty"`    // end of a partition until all nodes show one chain
}

// Digests are of the last global parameters; they say whether all nodes have the same.
type Digests struct {
	ChainDigest  string `json:"chain_digest"`
	StateDigest  string `json:"state_digest"`
	DigestsEqual bool   `json:"digests_equal"`
	ChainEqual   bool   `json:"chain_equal"`
}

// Check is one promise of the run and whether it was kept.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail"`
}

// NodeReport is one node of the run.
type NodeReport struct {
	Name         string  `json:"name"`
	ID           string  `json:"id"`
	Role         string  `json:"role"`
	End          string  `json:"end"`             // done, left or killed; "" for a guest
	Divisor      float64 `json:"speed,omitempty"` // times slower than full speed
	Tokens       uint64  `json:"tokens"`          // trained
	TokensFolded uint64  `json:"tokens_folded"`
	Share        float64 `json:"share"` // of the folded tokens

	TokensReturned  uint64 `json:"tokens_returned"`
	TokensDiscarded uint64 `json:"tokens_discarded"` // published, on no chain that counts
	TokensLost      uint64 `json:"tokens_lost"`

	Link    string   `json:"link,omitempty"`     // at the start
	LinkUse *float64 `json:"link_use,omitempty"` // bytes sent over what the uplink could carry

	TokensPerS *float64            `json:"tokens_per_s,omitempty"`
	Capability *Capability         `json:"capability,omitempty"`
	Time       *status.TimeAccount `json:"time,omitempty"`
	RSSBytes   *uint64             `json:"rss_bytes,omitempty"`
	Planned    int                 `json:"planned_steps,omitempty"`      // the most that it planned for a delta
	Upload     *float64            `json:"upload_bytes_per_s,omitempty"` // that its link was measured to carry, at its end
	Lives      []Life              `json:"lives,omitempty"`              // its processes, one after the other
}

// Life is one process of a node.
type Life struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Killed bool      `json:"killed,omitempty"` // by chaos
}

// Capability is what a node claimed in the handshake.
type Capability struct {
	Hardware      string   `json:"hardware"`
	Trainer       string   `json:"trainer"`
	Precision     string   `json:"precision"`
	TokensPerS    *float64 `json:"tokens_per_s,omitempty"`
	TokensPerStep uint64   `json:"tokens_per_step"`
}

// Passed says whether every check passed.
func (r Report) Passed() bool {
	for _, c := range r.Checks {
		if !c.Passed {
			return false
		}
	}
	return true
}

// save writes the report into the world's folder.
func (r Report) save(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// measured is a figure, absent if it is zero: none of those that this is used
// for can be zero where it was measured.
func measured[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}
