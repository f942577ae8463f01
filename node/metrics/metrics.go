// Package metrics tells Prometheus what nodes say of themselves. Names follow its
// conventions: base units, and _total for what only grows. A dashboard for Grafana shows
// them.
package metrics

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"atoll/node/status"
)

// Limits of a scrape.
const (
	maxScrapes = 4   // at once: one Prometheus, its replica, and people
	maxPeers   = 128 // with a series of their own, by contribution: a database keeps each for long
)

// Handler answers with the metrics of the statuses that it is given.
func Handler(statuses func() []status.Snapshot) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{statuses})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
}

//go:embed grafana.json
var dashboard []byte

// Dashboard answers with a dashboard for Grafana, to be imported there.
func Dashboard() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(dashboard) // the reader may go away
	})
}

// collector makes metrics of the newest statuses at each scrape.
type collector struct{ statuses func() []status.Snapshot }

// Describe says nothing, as what there is follows from the statuses: the registry then checks
// each scrape instead.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, s := range c.statuses() {
		node := status.ShortID(s.Self)
		if seen[node] {
			continue // two processes of one key: the registry refuses what is there twice
		}
		seen[node] = true
		x := scrape{out, node}
		x.numbers(s)
		x.run(s)
		x.peers(s)
		x.account(s)
	}
}

// scrape writes the metrics of one node.
type scrape struct {
	out  chan<- prometheus.Metric
	node string
}

// put writes one value. Labels alternate between names and values, after that of the node.
func (x scrape) put(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
	names, values := []string{"node"}, []string{x.node}
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, strings.ToValidUTF8(labels[i+1], ""))
	}
	x.out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func (x scrape) gauge(name, help string, value float64, labels ...string) {
	x.put(prometheus.GaugeValue, name, help, value, labels...)
}

func (x scrape) counter(name, help string, value float64, labels ...string) {
	x.put(prometheus.CounterValue, name, help, value, labels...)
}

// number is a metric that a node has once.
type number struct {
	name, help string
	kind       prometheus.ValueType
	absent     bool // 0 means that it is not known
	value      func(status.Snapshot) float64
}

const (
	grows  = prometheus.CounterValue
	varies = prometheus.GaugeValue
)

// numbers are all metrics without labels of their own.
var numbers = []number{
	{"atoll_start_time_seconds", "When the process of the node began, in Unix time.", varies, false, func(s status.Snapshot) float64 { return float64(s.Started.UnixMilli()) / 1000 }},
	{"atoll_status_time_seconds", "When the node said all of this, in Unix time.", varies, false, func(s status.Snapshot) float64 { return float64(s.At.UnixMilli()) / 1000 }},
	{"atoll_run_budget_tokens", "Tokens after which the run is over.", varies, false, func(s status.Snapshot) float64 { return float64(s.BudgetTokens) }},
	{"atoll_run_folded_tokens", "Tokens folded into the model. It may shrink a little when a fold is done again.", varies, false, func(s status.Snapshot) float64 { return float64(s.TokensFolded) }},
	{"atoll_run_tokens_per_second", "Tokens folded per second by the whole run, over the last minute.", varies, true, func(s status.Snapshot) float64 { return s.TokensPerS }},
	{"atoll_run_remaining_seconds", "Time until the end of the run at this speed.", varies, true, func(s status.Snapshot) float64 { return s.ETASeconds }},
	{"atoll_finished", "1 when the run is over and this node holds its model.", varies, false, func(s status.Snapshot) float64 { return truth(s.Finished) }},
	{"atoll_agreed", "1 when the newest heartbeats of all live peers show the digests of this node.", varies, false, func(s status.Snapshot) float64 { return truth(s.Agreed) }},
	{"atoll_parameters", "Parameters of the model.", varies, false, func(s status.Snapshot) float64 { return float64(s.Params) }},
	{"atoll_steps_total", "Inner steps that this node has taken.", grows, false, func(s status.Snapshot) float64 { return float64(s.Step) }},
	{"atoll_trained_tokens_total", "Tokens that this node has trained on.", grows, false, func(s status.Snapshot) float64 { return float64(s.TokensTrained) }},
	{"atoll_train_loss", "Training loss of this node, in nats per token.", varies, true, func(s status.Snapshot) float64 { return s.TrainLoss }},
	{"atoll_learning_rate", "Learning rate of the inner optimizer.", varies, true, func(s status.Snapshot) float64 { return s.LearningRate }},
	{"atoll_validation_bpb", "Bits per byte of the newest global parameters on held-out text, where tokens are bytes of text.", varies, true, func(s status.Snapshot) float64 { return s.ValBPB }},
	{"atoll_validation_loss", "Loss of the newest global parameters on held-out text in nats per token, where tokens are no bytes.", varies, true, func(s status.Snapshot) float64 { return s.ValLoss }},
	{"atoll_validation_folded_tokens", "Tokens folded by the global parameters that were measured.", varies, true, func(s status.Snapshot) float64 { return float64(s.ValAtTokens) }},
	{"atoll_delta_planned_steps", "Inner steps that this node plans for a delta.", varies, true, func(s status.Snapshot) float64 { return float64(s.Plan.Planned) }},
	{"atoll_rounds_closed_total", "Rounds that closed on this node, all fragments together.", grows, false, func(s status.Snapshot) float64 { return float64(s.Account.Rounds) }},
	{"atoll_deltas_folded", "Deltas in the chain that this node holds.", varies, false, func(s status.Snapshot) float64 { return float64(s.Account.Deltas) }},
	{"atoll_deltas_late_total", "Deltas that came after their round had closed here.", grows, false, func(s status.Snapshot) float64 { return float64(s.Account.Late) }},
	{"atoll_deltas_refused_total", "Deltas of others that this node did not accept.", grows, false, func(s status.Snapshot) float64 { return float64(s.Account.Refused) }},
	{"atoll_payload_received_bytes_total", "Bytes of payloads of deltas that came here.", grows, false, func(s status.Snapshot) float64 { return float64(s.Account.PayloadBytes) }},
	{"atoll_sent_bytes_total", "Bytes sent, all streams together.", grows, false, func(s status.Snapshot) float64 { return float64(s.Net.SentBytes) }},
	{"atoll_received_bytes_total", "Bytes received, all streams together.", grows, false, func(s status.Snapshot) float64 { return float64(s.Net.ReceivedBytes) }},
	{"atoll_relayed_bytes_total", "Bytes that passed through this node between others.", grows, false, func(s status.Snapshot) float64 { return float64(s.Net.Reach.RelayedBytes) }},
	{"atoll_dropped_messages_total", "Messages that were dropped because a queue was full.", grows, false, func(s status.Snapshot) float64 { return float64(s.Net.Dropped) }},
	{"atoll_reachable", "1 when others reach this node by themselves.", varies, false, func(s status.Snapshot) float64 { return truth(s.Net.Reach.Public) }},
	{"atoll_resident_memory_bytes", "Memory of the process.", varies, true, func(s status.Snapshot) float64 { return float64(s.RSSBytes) }},
	{"atoll_goroutines", "Goroutines of the process.", varies, true, func(s status.Snapshot) float64 { return float64(s.Goroutines) }},
	{"atoll_open_files", "Open descriptors of the process, sockets included.", varies, true, func(s status.Snapshot) float64 { return float64(s.OpenFiles) }},
	{"atoll_training_clock_seconds_total", "Wall time of the training thread.", grows, false, func(s status.Snapshot) float64 { return s.Time.Total }},
}

func truth(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func (x scrape) numbers(s status.Snapshot) {
	for _, n := range numbers {
		if v := n.value(s); v != 0 || !n.absent {
			x.put(n.kind, n.name, n.help, v)
		}
	}
}

// states are what a node may do.
var states = []string{"joining", "training", "stopped", "observing", "leaving", status.Paused}

// run writes which run it is, what the node does in it, and how far its fragments are.
func (x scrape) run(s status.Snapshot) {
	node := status.ShortID(s.Self)
	x.gauge("atoll_info", "Always 1; the labels say which node of which run this is.", 1,
		"run", status.ShortID(s.Run), "run_name", s.Name, "name", status.LabelsOf(s.Peers)[node], "model", s.Model, "optimizer", s.Optimizer, "role", s.Role, "version", s.Version)
	for _, state := range states {
		x.gauge("atoll_state", "1 for the state in which the node is.", truth(s.State == state), "state", state)
	}
	wrong := map[string]int{}
	for _, a := range s.Alarms {
		wrong[a.Kind]++
	}
	for kind, n := range wrong {
		x.gauge("atoll_alarms", "What is wrong and a person has to look after, by its kind.", float64(n), "kind", kind)
	}
	for i, f := range s.Fragments {
		fragment := strconv.Itoa(i)
		x.gauge("atoll_fragment_closed_rounds", "Rounds of a fragment that are closed.", float64(f.Closed), "fragment", fragment)
		x.gauge("atoll_fragment_contributors", "Nodes whose deltas the last closed round of a fragment has.", float64(f.Contributors), "fragment", fragment)
	}
	for protocol, n := range s.Net.ByProtocol {
		x.counter("atoll_protocol_received_bytes_total", "Bytes received by a protocol.", float64(n), "protocol", protocol)
	}
}

// peers writes how many peers there are, and what is known of those who contribute most.
func (x scrape) peers(s status.Snapshot) {
	count, links := map[string]int{}, map[string]int{}
	for _, p := range s.Peers {
		if !p.Self && !p.Faded {
			count[peerState(p)]++
			links[p.Link]++
		}
	}
	for _, state := range []string{"live", status.Paused, status.Left, status.Gone, status.Revoked, status.Refused} {
		x.gauge("atoll_peers", "Other nodes that this one knows, by how they are.", float64(count[state]), "state", state)
	}
	for _, kind := range []string{status.LinkDirect, status.LinkRelayed, status.LinkPunching} {
		x.gauge("atoll_connections", "Peers to which there is a connection, by its kind.", float64(links[kind]), "kind", kind)
	}
	seen := map[string]bool{}
	for _, p := range most(s.Peers) {
		id := status.ShortID(p.ID)
		if seen[id] {
			continue
		}
		seen[id] = true
		if !p.ShareUnknown {
			x.gauge("atoll_peer_share_ratio", "Part of all folded tokens that a node has contributed.", p.Share, "peer", id, "name", p.Label)
		}
		x.gauge("atoll_peer_tokens_per_second", "Speed of a node as its heartbeats say.", p.TokensPerS, "peer", id, "name", p.Label)
		if !p.Self {
			x.gauge("atoll_peer_lag_seconds", "Time since a node was last heard.", p.LagS, "peer", id, "name", p.Label)
			x.counter("atoll_peer_sent_bytes_total", "Bytes that this node has sent to a peer.", float64(p.SentBytes), "peer", id, "name", p.Label)
			x.counter("atoll_peer_received_bytes_total", "Bytes that this node has received from a peer.", float64(p.ReceivedBytes), "peer", id, "name", p.Label)
		}
	}
}

// peerState is one of few words for how a peer is.
func peerState(p status.Peer) string {
	if p.State == status.Refused || p.State == status.Paused || p.Away() {
		return p.State
	}
	return "live"
}

// account writes where tokens and time went.
func (x scrape) account(s status.Snapshot) {
	for _, part := range []struct {
		name   string
		tokens []uint64
	}{
		{"folded", s.Account.OwnFolded}, {"in_flight", s.Account.OwnInFlight}, {"unpublished", s.Account.OwnUnpublished},
		{"returned", s.Account.OwnReturned}, {"discarded", s.Account.OwnDiscarded}, {"lost_here", s.Account.OwnLostHere},
		{"lost_before", s.Account.OwnLostBefore},
	} {
		x.gauge("atoll_own_tokens", "Where the tokens of this node are, as means over fragments by their parameters.", status.MeanTokens(s.Fragments, part.tokens), "part", part.name)
	}
	for _, part := range []struct {
		name    string
		seconds float64
	}{
		{"step", s.Time.Step}, {"paced", s.Time.Paced}, {"publish", s.Time.Publish}, {"adopt", s.Time.Adopt}, {"save", s.Time.Save}, {"evaluate", s.Time.Evaluate},
		{"joining", s.Time.Joining}, {"ending", s.Time.Ending}, {"learner_gone", s.Time.Gone}, {"waiting_for_data", s.Time.Data}, {"paused", s.Time.Paused},
		{"asleep", s.Time.Asleep}, {"waiting_on_peers", s.Time.Waiting},
	} {
		x.counter("atoll_training_seconds_total", "Where the wall time of the training thread went.", part.seconds, "activity", part.name)
	}
	if q := s.Limits.Quota; q != nil {
		x.gauge("atoll_quota_left_bytes", "Traffic that is left in this period.", float64(q.Left))
	}
	if d := s.Data; d != nil {
		x.gauge("atoll_data_missing_bytes", "Bytes of shards that are needed now and not here.", float64(d.MissingBytes))
		x.gauge("atoll_data_used_bytes", "Disk space of shards that were fetched.", float64(d.UsedBytes))
	}
}
