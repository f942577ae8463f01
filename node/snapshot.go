package node

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/hardware"
	"atoll/node/joinlink"
	"atoll/node/show"
	"atoll/node/status"
	"atoll/optimizer/rounds"
)

// version is that of the tag, which the linker of a release puts here.
var version = "0.1"

// Agent is the program and version that peers see.
var Agent = "atoll/" + version

// publishStatus makes a new status for everyone who asks.
func (n *node) publishStatus() {
	n.keepCommon()
	if n.machine == nil {
		return
	}
	v := n.view()
	if v.Machine.Phase() == core.Ready { // the model that a newcomer fetches says nothing of a month
		n.screen.Carried(v.At, v.Net.SentBytes, v.Net.ReceivedBytes)
	}
	s := show.Snapshot(v)
	s.Settings = n.inForce()
	n.latest.Store(&s)
	n.keepStatus(s)
	if s.At.Sub(n.shownKept) >= keepShownEvery {
		n.shownKept = s.At
		n.work.disk.Put(n.keepShown)
	}
	tips := n.tipList()
	n.latestTips.Store(&tips)
	if n.cfg.OnStatus != nil {
		n.cfg.OnStatus(s)
	}
}

// inForce are the settings that are not the default.
func (n *node) inForce() []status.Setting {
	if s := n.settings.Load(); s != nil {
		return *s
	}
	return n.cfg.Settings
}

func (n *node) lastStatus() status.Snapshot {
	if s := n.latest.Load(); s != nil {
		return *s
	}
	s := status.Snapshot{Settings: n.inForce(), Identity: status.Identity{
		Version: Agent, Self: hex.EncodeToString(n.self[:]), Started: n.started, At: time.Now(), State: "joining",
	}}
	if at := n.stage.Load(); at != nil {
		s.Stage = *at
	}
	return s
}

// What only screens show is kept for the next process under shownKey, so often that a kill costs little.
const (
	shownKey       = "shown"
	keepShownEvery = time.Minute
)

func (n *node) keepShown() {
	if n.latest.Load() == nil {
		return // it has seen nothing, and what is kept stays
	}
	b, err := json.Marshal(status.KeptOf(n.lastStatus()))
	if err == nil {
		err = n.store.Put(shownKey, b)
	}
	n.check("keep what is shown", err)
}

// keptShown is what an earlier process kept, empty if none did.
func (n *node) keptShown() (k status.Kept) {
	if b, err := n.store.Get(shownKey); err != nil || json.Unmarshal(b, &k) != nil {
		return status.Kept{}
	}
	return k
}

// Times between two writings of the status: the most while nothing in it changes that others go by, and the least where only who is
// here does, which changes all the time among many.
const (
	keepStatusEvery = 30 * time.Second
	keepPeersEvery  = 5 * time.Second
)

// keepStatus has the folder say what this node knows, for those who ask after it was killed.
func (n *node) keepStatus(s status.Snapshot) {
	what, who, age := fmt.Sprint(s.State, s.Link, s.LetsIn, s.Finished, s.Limits.Why), fmt.Sprint(status.LivePeers(s.Peers), len(s.Peers)), s.At.Sub(n.statusKept.at).Abs()
	if what == n.statusKept.what && (age < keepPeersEvery || who == n.statusKept.who && age < keepStatusEvery) {
		return
	}
	n.statusKept.what, n.statusKept.who, n.statusKept.at = what, who, s.At
	n.work.disk.Put(n.writeStatus)
}

// writeStatus leaves what is there where this process has not come so far that it knows more.
func (n *node) writeStatus() {
	if n.latest.Load() == nil {
		return
	}
	b, err := json.MarshalIndent(n.worthKeeping(), "", "  ")
	if err == nil {
		err = n.cfg.disk.WriteFile(n.cfg.Dir, status.FinalFile, append(b, '\n'))
	}
	n.check("write the status", err)
}

// worthKeeping is the last status of the folder: what an earlier process knew of the run, where this one was refused before it knew more,
// with what this one came to.
func (n *node) worthKeeping() status.Snapshot {
	last := n.lastStatus()
	if last.State != wire.Joining.String() {
		return last
	}
	before, err := status.ReadFinal(n.cfg.Dir)
	if err != nil || before.Run != last.Run || before.Self != last.Self {
		return last
	}
	before.Events, before.Alarms = last.Events, last.Alarms
	return before
}

// view is what a snapshot of this node is made from.
func (n *node) view() show.View {
	carried, link := n.host.Stats(), n.link()
	m := n.machine
	v := show.View{
		At: time.Now(), Now: n.clock.Now(), Started: n.started,
		Version: Agent, Self: n.self, Record: n.record.get(), Name: n.cfg.Name, Run: n.run, Genesis: n.genesis, Layout: n.plan,
		Link: link.String(), LetsIn: n.letsIn(link), Role: n.role(), Waits: n.learnerStage(), Disk: string(n.disk.trouble), Members: n.members,
		Machine: m.View(), Rounds: m.Rounds(), Chains: m.Gossip().Chains(), Peers: n.peers(carried), Screen: n.screen,
		Finished: n.finished, Rejoined: n.rejoined, Steps: n.steps, Trained: n.trained, Quality: n.evaluations.shown(),
		Data: n.dataStatus(), Net: n.netStatus(carried),
		Process: status.Process{RSSBytes: hardware.RSSBytes(), Goroutines: runtime.NumGoroutine(), OpenFiles: hardware.OpenFiles()},
	}
	v.Limits = n.allowance.Status(v.At, m.View().Resting())
	v.Upload, v.UploadFull = n.host.Upload()
	if n.train != nil {
		p := n.train.Stats()
		v.Learner = &show.Learner{Loss: p.Loss, Rate: p.Rate, PerSecond: p.PerSecond, Time: p.Account}
	}
	return v
}

// peers are all that gossip knows of, with what connections carried.
func (n *node) peers(carried p2p.Stats) (peers []show.Peer) {
	for _, v := range n.machine.Gossip().Peers().All() {
		p := show.Peer{PeerView: v, Sent: carried.Peers[v.ID].Sent, Received: carried.Peers[v.ID].Received}
		if path, ok := n.host.Path(v.ID); ok {
			p.Path = &show.Path{Addr: path.Addr, Relay: path.Relay, Punching: path.Punching}
		}
		peers = append(peers, p)
	}
	return peers
}

func (n *node) netStatus(st p2p.Stats) status.Net {
	s := status.Net{SentBytes: st.Sent, ReceivedBytes: st.Received, ByProtocol: map[string]uint64{}}
	s.Reach = n.reach(st)
	s.Dropped = st.Dropped.Messages + st.Dropped.Unchecked + st.Dropped.Outbound
	for name, t := range st.Protocols {
		s.ByProtocol[name] = t.Received
	}
	return s
}

func (n *node) role() string {
	if n.cfg.Observe {
		return hello.Observer
	}
	return hello.Learner
}

func (n *node) link() joinlink.Link {
	link := joinlink.Short(n.run, n.ownAddrs(), n.publicPeers())
	link.Invite = n.linkInvite()
	return link
}

// learnerStage says what steps wait for.
func (n *node) learnerStage() string {
	if n.unanswered.text != "" {
		return n.unanswered.text
	}
	if n.external != nil && n.external.Absent() {
		return "waits for " + n.attaches()
	}
	if at := n.tuning.Load(); at != nil {
		return *at
	}
	return n.slow.text()
}

// showStage tells of a stage before there is a machine to ask.
func (n *node) showStage(text string) {
	n.stage.Store(&text)
	if n.cfg.OnStatus != nil {
		n.cfg.OnStatus(n.lastStatus())
	}
}

// watch does what is due beside the run: a live evaluation, the notices of being alone and of folds that stay away.
func (n *node) watch() {
	if n.machine.View().Phase() == core.Ready { // before, tokens come with a snapshot
		n.screen.Speed(time.Now(), n.machine.View().FoldedTokens())
	}
	over := n.machine.View().FoldedTokens() >= n.genesis.Outer.Budget // nobody is missed, and nothing trained
	if n.machine.View().Alone() && len(n.dials) > 0 && !n.aloneSaid && !over {
		n.aloneSaid = true
		n.screen.Event("alone", "", n.aloneText())
	}
	n.sayUnanswered(time.Now())
	n.watchFolds()
	n.evaluate()
	n.exports.export(n)
}

// unansweredEvery is how often a newcomer that reached nobody of its link says so.
const unansweredEvery = 10 * time.Second

// sayUnanswered says whom a newcomer dials that has nothing of the run, and what came of it.
func (n *node) sayUnanswered(now time.Time) {
	u := &n.unanswered
	switch {
	case !n.machine.View().Unanswered():
		u.text = ""
	case u.said.IsZero():
		u.said = now
	case now.Sub(u.said) >= unansweredEvery:
		u.said = now
		u.text = "no node that the link names answers: waits and dials on, as the run may go on there. Start one of them again, or ask for a new link"
		if len(n.screen.Dials()) > 0 {
			u.text += ": " + n.whyAlone(n.screen.Dials())
		}
		n.screen.Event("alone", "", u.text)
	}
}

// aloneText says that nobody answers, and why as far as dials tell. A member alone goes on with the run. A guest closes no round,
// and its owner would take its steps for progress.
func (n *node) aloneText() string {
	text := "no peer of the link answers, training alone and dialling on"
	if n.members.Guest(n.self) {
		text = "no peer of the link answers, training alone (a guest's rounds close only beside a member) and dialling on"
	}
	if len(n.screen.Dials()) > 0 {
		text += ": " + n.whyAlone(n.screen.Dials())
	}
	return text
}

// countLast reads what the workers still had for the loop. Nobody executes what the machine wants done for it any more. What
// becomes of own deltas is in the account all the same: the machine counts them no longer where they were.
func (n *node) countLast() {
	n.inbox.Each(func(do func(core.Time)) { do(n.clock.Now()) })
	for _, e := range n.machine.Effects() {
		if w, is := e.(core.Work); is {
			if a, is := w.Effect.(rounds.Adopt); is {
				n.screen.Adopted(a.Adopt)
			}
		}
	}
}
