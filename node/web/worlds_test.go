package web

import (
	"fmt"
	"math"
	"strings"
	"time"

	"atoll/node/status"
)

// testTime is when the worlds of the tests are as they are.
var testTime = time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC)

func nowOfTests() time.Time { return testTime }

// hostile is what a peer may call itself: markup, and a letter that turns the direction of text.
const hostile = `<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>` + "\u202egnp.elif"

// idOf is the id of a test's node.
func idOf(i int) string {
	return strings.Repeat(fmt.Sprintf("%016x", uint64(0x1234567+i)*0x9e3779b97f4a7c15), 4)
}

// peersOf are n peers that are well, of which the first is the node itself.
func peersOf(n int) (peers []status.Peer) {
	for i := range n {
		peers = append(peers, status.Peer{
			ID: idOf(i), Self: i == 0, Role: "learner", State: "training", Hardware: "AMD EPYC 9654 (16 threads)", Trainer: "builtin", Precision: "bf16",
			TokensFolded: float64(1000 * (n - i)), Trained: true, Share: 2 * float64(n-i) / float64(n*(n+1)), TokensPerS: 1200 + 10*float64(i), LagS: float64(i % 5), Link: []string{status.LinkDirect, status.LinkDirect, status.LinkRelayed}[i%3],
			Upload: 2e6, UploadFull: i%4 == 3, SentBytes: uint64(900_000 * (i + 1)), ReceivedBytes: uint64(1_300_000 * (i + 1)),
		})
	}
	peers[0].Link, peers[0].LagS, peers[0].SentBytes, peers[0].ReceivedBytes = "", 0, 0, 0
	return peers
}

// trainingStatus is the status of a node with n-1 peers in the middle of a run.
func trainingStatus(n int) status.Snapshot {
	s := status.Snapshot{
		Identity: status.Identity{Version: "atoll/0.1", Run: strings.Repeat("57e73ea9", 8), Name: "opticks", Self: idOf(0), Role: "learner", State: "training", Started: testTime.Add(-4 * time.Minute), At: testTime, Link: "atoll:" + strings.Repeat("57e73ea9", 8) + ",/ip4/192.0.2.1/tcp/27182/p2p/12D3KooWGRUfHTGzXtnEvyCyzcM2LMTMUGCjcyLWqXR1WNqmhJ6m#secret-of-the-invite"},
		Progress: status.Progress{Model: "tiny", Params: 824448, Optimizer: "muon", BudgetTokens: 2_000_000, TokensFolded: 860_000, TokensPerS: 8123, ETASeconds: 140, TokensTrained: 240_000, TrainLoss: 1.71, ValBPB: 2.312, ValBytes: 16384, ValAtTokens: 850_000},
		Plan:     status.Plan{H: 24, Planned: 24, Bound: status.BoundRun},
		Time:     status.TimeAccount{Step: 190, Paced: 10, Publish: 3, Adopt: 2, Waiting: 1, Total: 210},
		Net:      status.Net{SentBytes: 41 << 20, ReceivedBytes: 58 << 20},
		Peers:    peersOf(n),
	}
	for f := range 8 {
		s.Fragments = append(s.Fragments, status.Fragment{Closed: uint32(11 + f%2), Tokens: 850_000, Params: 103056, Contributors: n})
		s.Account.OwnFolded = append(s.Account.OwnFolded, 210_000)
		s.Account.OwnInFlight = append(s.Account.OwnInFlight, 18_000)
		s.Account.OwnUnpublished = append(s.Account.OwnUnpublished, 12_000)
		s.Account.OwnDiscarded = append(s.Account.OwnDiscarded, 0)
		s.Account.OwnLostHere = append(s.Account.OwnLostHere, 0)
		s.Account.OwnLostBefore = append(s.Account.OwnLostBefore, 0)
	}
	for i := range 120 {
		at := uint64(7000 * i)
		s.History = append(s.History, status.Point{
			AtMs: testTime.Add(time.Duration(2*i-240) * time.Second).UnixMilli(), Tokens: at + 10_000, PerS: float32(8000 + 400*math.Sin(float64(i)/9)),
			Val: float32(2.2 + 3.6*math.Exp(-float64(i)/28)), ValAt: at, Loss: float32(1.6 + 3*math.Exp(-float64(i)/25)),
		})
	}
	for i, p := range s.Peers[1:min(n, 5)] {
		s.Events = append(s.Events, status.Event{At: testTime.Add(time.Duration(i-230) * time.Second), Kind: "connected", Peer: p.ID[:10], Text: "learner at /ip4/198.51.100.7/tcp/27182"})
	}
	s.Events = append(s.Events, status.Event{At: testTime.Add(-200 * time.Second), Kind: "contributing", Text: "first own delta is folded"})
	return s
}

// oneNode is a world of one node.
func oneNode(s status.Snapshot) World { return World{Nodes: []Node{{Status: s}}} }

// joiningWorld is a node that fetches the model.
func joiningWorld() World {
	s := trainingStatus(3)
	s.State, s.Stage, s.ValBPB, s.TrainLoss, s.ETASeconds, s.TokensPerS = "joining", "fetches the model (43 %)", 0, 0, 0, 0
	s.History, s.TokensTrained, s.Time = nil, 0, status.TimeAccount{}
	s.Fragments, s.Account = nil, status.Account{}
	return oneNode(s)
}

// fourNodes is a testnet whose nodes are connected unless parted says that the first two
// and the last two are not.
func fourNodes(parted bool) World {
	w := World{Link: "atoll:" + strings.Repeat("57e73ea9", 8) + ",/ip4/127.0.0.1/tcp/40001/p2p/12D3KooWGRUfHTGzXtnEvyCyzcM2LMTMUGCjcyLWqXR1WNqmhJ6m", Join: "atoll join LINK me --profile local"}
	for i := range 4 {
		s := trainingStatus(4)
		s.Self, s.TokensFolded = idOf(i), s.TokensFolded-uint64(i)
		for k := range s.Peers {
			s.Peers[k].Self, s.Peers[k].Link = k == i, status.LinkDirect
			if parted && k/2 != i/2 {
				s.Peers[k].Link, s.Peers[k].State, s.Peers[k].LagS = "", status.Gone, 34
			}
		}
		w.Nodes = append(w.Nodes, Node{Name: fmt.Sprintf("node%d", i), Status: s})
	}
	return w
}

// alarmWorld is a node whose memory is not what it was, among peers of which one would like to
// write the page itself.
func alarmWorld() World {
	s := trainingStatus(6)
	s.Name = "opticks " + hostile
	s.Peers[1].Hardware, s.Peers[1].State = hostile, "training"
	s.Peers[2].State, s.Peers[2].LagS, s.Peers[2].Link = status.Gone, 72, ""
	s.Peers[3].State, s.Peers[3].Reason, s.Peers[3].Link = "refused", "it is of another run: "+hostile, ""
	s.Events = append(s.Events,
		status.Event{At: testTime.Add(-50 * time.Second), Kind: "refused", Peer: s.Peers[3].ID[:10], Text: hostile},
		status.Event{At: testTime.Add(-40 * time.Second), Kind: "memory damaged", Peer: s.Self, Text: "fragment 3: the global parameters are not what they were: folds them again and goes on", Remedy: "if it happens again, test this machine's memory"})
	s.Alarms = status.AlarmsOf(s)
	return oneNode(s)
}

// finishedWorld is a run that is over.
func finishedWorld() World {
	s := trainingStatus(4)
	s.State, s.Finished, s.Agreed, s.TokensFolded, s.ETASeconds, s.TokensPerS = "stopped", true, true, s.BudgetTokens, 0, 0
	return oneNode(s)
}

// testWorlds are what the page has to look well with, and what must stand on it.
var testWorlds = []struct {
	name  string
	world World
	says  []string
}{
	{"empty", World{}, []string{"Waits for the first node to start."}},
	{"joining", joiningWorld(), []string{"This node is joining the run.", "Fetches the model (43 %).", "opticks", "3 machines"}},
	{"one", oneNode(trainingStatus(1)), []string{"One machine trains a model of 824k parameters.", "43 % done", "1 machine", "trains alone so far", "This machine is alone so far."}},
	{"four", fourNodes(false), []string{"4 machines train a model of 824k parameters together.", "43 % done, about 2 min 20 s left.", "2.312", "8.12k", "node3", "6 connections, all direct", "fragment 7", "in the model", "Show the command"}},
	{"forty", oneNode(trainingStatus(40)), []string{"40 machines train", "through relays", "(this one)"}},
	{"partition", fourNodes(true), []string{"The network is in 2 parts, and each trains on.", "node0, node1 | node2, node3", "2 connections, all direct"}},
	{"alarm", alarmWorld(), []string{"1 machine cannot be heard. The run goes on.", "memory damaged", "test this machine's memory", "it is of another run", `onerror="window.hurt=1"`}},
	{"finished", finishedWorld(), []string{"The run is finished.", "Every live node holds the same bits.", "2M"}},
}
