package preflight

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/inspect"
)

// Facts are what was seen.
type Facts struct {
	Networks  []netip.Addr // addresses of this machine on networks
	Tried     []Tried      // what came of the addresses of the link
	Reached   string       // the address at which a peer let this machine in; empty if none did
	LetsIn    string       // whom the link lets in; "" where it has no invite
	Elsewhere bool         // that peer is none of the link's: it was heard on this network
	Run       *Run         // what that peer said of the run; nil if it said nothing
	Clock     *Clock       // how this machine's clock compares with that peer's; nil if it did not say
	Packets   *Packets     // whether large ones pass to and from it, or another that answers; nil if nobody does
	Port      int          // on which this machine listened
	PortTaken int          // the usual port, if another program has it; else 0
	Seen      []p2p.Seen   // where peers see this machine
	Back      []Back       // at which addresses they dialled it
	Mapped    []string     // addresses that the router forwards, as multiaddrs
	Router    *bool        // whether a router answered UPnP or NAT-PMP; nil if none was asked
}

// Tried is what came of dialling an address: Err is nil if its peer let this machine in.
type Tried struct {
	Addr string
	Err  error
}

// Run is what a newcomer learns of a run.
type Run struct {
	Name   string
	Budget uint64 // tokens
	Folded uint64 // of them, 0 if no member said
	Over   bool
}

// Clock is how far the clock of this machine is ahead of another one, and how sure that is.
type Clock struct{ Ahead, Within time.Duration }

// Back is a dial back: a peer tried to connect to an address of this machine.
type Back struct {
	Addr    string
	Through bool
	Err     error // it did not try
}

// clockSlack is how far two clocks may differ without harm: times are shown, and hours kept, by
// them.
const clockSlack = time.Minute

// Findings judges the facts. One that is OK may still have a remedy, which would make it better.
func (f Facts) Findings() (found []inspect.Finding) {
	add := func(x inspect.Finding, ok bool) {
		if ok {
			found = append(found, x)
		}
	}
	add(f.network())
	if len(f.Networks) == 0 {
		return found
	}
	if f.Reached != "" || f.Packets == nil {
		add(f.link())
	}
	add(f.packets())
	add(f.run())
	add(f.clock())
	add(f.port())
	add(f.router())
	add(f.reach())
	return found
}

func good(name, text, remedy string) (inspect.Finding, bool) {
	return inspect.Finding{Name: name, OK: true, Text: text, Remedy: remedy}, true
}

func bad(name, text, remedy string) (inspect.Finding, bool) {
	return inspect.Finding{Name: name, Text: text, Remedy: remedy}, true
}

func nothing() (inspect.Finding, bool) { return inspect.Finding{}, false }

func (f Facts) network() (inspect.Finding, bool) {
	if len(f.Networks) == 0 {
		return bad("network", "this machine is on no network", "connect it to one, then ask again")
	}
	var texts []string
	for _, a := range f.Networks {
		texts = append(texts, a.String())
	}
	return good("network", "this machine is "+strings.Join(texts, ", "), "")
}

// link says whether somebody lets this machine in.
func (f Facts) link() (inspect.Finding, bool) {
	switch {
	case f.Reached != "" && f.Elsewhere:
		return good("link", fmt.Sprintf("a member of the run is on this network, at %s; nobody answers at the addresses of the link", shown(f.Reached)), "")
	case f.Reached != "":
		text := "a member of the run answers at " + shown(f.Reached)
		if f.LetsIn != "" {
			text += "; the link is " + f.LetsIn
		}
		return good("link", text, "")
	case len(f.Tried) == 0:
		return bad("link", "the link names no address, and no member of the run is on this network", "ask a member for a link with addresses: its `atoll status` shows one")
	}
	return worst(f.Tried)
}

// worst is the finding about a link that leads nowhere: what a peer said goes before silence.
func worst(tried []Tried) (inspect.Finding, bool) {
	var said, silent []Tried
	for _, t := range tried {
		if _, _, told := WhyNot(t); told {
			said = append(said, t)
		} else {
			silent = append(silent, t)
		}
	}
	if len(said) > 0 {
		text, remedy, _ := WhyNot(said[0])
		return bad("link", text, remedy)
	}
	var texts, remedies []string
	for _, t := range silent {
		text, remedy, _ := WhyNot(t)
		texts = append(texts, text)
		remedies = append(remedies, cmp.Or(remedy, "ask a member for a new link: its `atoll status` shows one; if nobody is left, the run may be over"))
	}
	slices.Sort(texts)
	slices.Sort(remedies)
	return bad("link", "the link leads to nobody: "+strings.Join(slices.Compact(texts), "; "), strings.Join(slices.Compact(remedies), "; or "))
}

func (f Facts) run() (inspect.Finding, bool) {
	switch r := f.Run; {
	case r == nil:
		return nothing()
	case r.Over:
		return bad("run", fmt.Sprintf("the run %s is over: its %d tokens are folded", r.Name, r.Budget),
			"join another one to train; for its model, join with --observe while a member still serves it")
	case r.Folded > 0:
		return good("run", fmt.Sprintf("%s, %.0f %% of %d tokens are folded", r.Name, 100*float64(r.Folded)/float64(max(r.Budget, 1)), r.Budget), "")
	default:
		return good("run", fmt.Sprintf("%s, %d tokens", r.Name, r.Budget), "")
	}
}

func (f Facts) clock() (inspect.Finding, bool) {
	c := f.Clock
	if c == nil {
		return nothing()
	}
	off := c.Ahead.Abs().Round(time.Second)
	if c.Ahead.Abs() <= clockSlack+c.Within {
		return good("clock", fmt.Sprintf("within %v of the peer's", max(off, time.Second)), "")
	}
	which := "ahead of"
	if c.Ahead < 0 {
		which = "behind"
	}
	return bad("clock", fmt.Sprintf("this machine's clock is %v %s the peer's", off, which), "set this machine's clock, best by NTP; if it is right, the peer's is wrong")
}

func (f Facts) port() (inspect.Finding, bool) {
	if f.PortTaken == 0 {
		return nothing()
	}
	return bad("port", fmt.Sprintf("port %d of this machine is taken, perhaps by another node: one that starts now takes any other, to which no forwarded port leads", f.PortTaken),
		"stop the other program, or choose a port for this node with --listen")
}
