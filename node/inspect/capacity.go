package inspect

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"atoll/node/files"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/tensor/codec"
)

// sweepBytes is the most that one delta of every fragment takes.
func sweepBytes(g genesis.Genesis) (sum int64) {
	for _, f := range g.Plan() {
		sum += int64(codec.MaxSize(g.Outer.Codec, f.Len))
	}
	return sum
}

// ledgerBytes estimates what so many tokens add to the ledger: a learner
// publishes every fragment once in H steps.
func ledgerBytes(g genesis.Genesis, tokens uint64) int64 {
	perSweep := float64(g.Outer.H) * float64(g.StepTokens())
	return int64(min(float64(sweepBytes(g))*float64(tokens)/perSweep, 1<<62))
}

// checkSpace compares the room on the disk with what the run will still need.
func (d *doctor) checkSpace() {
	free, err := files.Free(d.dir)
	if err != nil {
		d.bad("space", fmt.Sprintf("free space is unknown: %v", err), "check the folder")
		return
	}
	need := ledgerBytes(d.genesis, d.genesis.Outer.Budget-min(d.genesis.Outer.Budget, d.foldedTokens()))
	text := fmt.Sprintf("%s free, the rest of the run adds about %s", status.Bytes(float64(free)), status.Bytes(float64(need)))
	if need > free {
		d.bad("space", text, spaceRemedy(free))
		return
	}
	d.good("space", text)
}

// spaceRemedy says what to do where so many free bytes are too few. No ledger is kept in 0 MB.
func spaceRemedy(free int64) string {
	return fmt.Sprintf("free space, or start the node with --keep %dMB, so that it drops payloads of final rounds", max(free/2/1_000_000, 1))
}

// foldedTokens is what is known of the run's progress here.
func (d *doctor) foldedTokens() uint64 {
	if d.Running {
		return d.snapshot.TokensFolded
	}
	view, err := Ledger(d.dir)
	if err != nil {
		return 0
	}
	return uint64(view.TokensFolded)
}

// role is what the node of the folder is, unless it is told otherwise.
func (d *doctor) role() hardware.Role {
	command, _ := d.command() // a file that cannot be read is for the start to tell
	return hardware.Role{External: command != "" || !d.genesis.BuiltIn()}
}

// amount is so many bytes. Not every system says how much memory it has, or a process takes.
func amount(bytes uint64) string {
	if bytes == 0 {
		return "an unknown amount"
	}
	return status.Bytes(float64(bytes))
}

func (d *doctor) checkMemory() {
	have, need := hardware.MemoryBytes(), d.role().Need(d.genesis)
	if d.Running {
		d.good("memory", fmt.Sprintf("the node takes %s of an estimated %s; it may take %s here", amount(d.snapshot.RSSBytes), amount(need), amount(have)))
		return
	}
	d.judgeMemory(have, need)
}

func (d *doctor) judgeMemory(have, need uint64) {
	text := fmt.Sprintf("a learner needs about %s, and may take %s here", amount(need), amount(have))
	if have != 0 && need > have {
		d.bad("memory", text, d.role().Remedy())
		return
	}
	d.good("memory", text)
}

// checkSpeed says how long a round takes here, and what its deltas ask of the
// link.
func (d *doctor) checkSpeed() {
	perSecond, err := d.tokensPerSecond()
	if err != nil {
		d.bad("speed", err.Error(), "end what else takes memory on this machine, then ask again; if it stays so, `atoll bench` shows whether any model trains here")
		return
	}
	if perSecond <= 0 {
		text := "the running node has taken no step yet"
		if !d.Running {
			text = "another program trains on this node: start it to see how fast, or try it with `atoll doctor --learner CMD --try`"
		}
		d.good("speed", text)
		return
	}
	g := d.genesis
	round := time.Duration(float64(g.Outer.H) * float64(g.StepTokens()) / perSecond * float64(time.Second))
	out := 8 * float64(sweepBytes(g)) / round.Seconds() / 1e6
	others := float64(g.Outer.LearnersPerRound - 1)
	d.good("speed", fmt.Sprintf("%.0f tokens/s: %d steps and a delta of each fragment every %v; sends %s then (%.2f Mbit/s), and receives as much from each other learner, at most %.1f Mbit/s from %.0f",
		perSecond, g.Outer.H, threeDigits(round), status.Traffic(float64(sweepBytes(g))), out, others*out, others))
}

// threeDigits rounds a time to three digits: 2.39s.
func threeDigits(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// tokensPerSecond is the speed of the running node, or a short measurement.
func (d *doctor) tokensPerSecond() (float64, error) {
	if d.Running {
		if len(d.snapshot.Peers) == 0 {
			return 0, nil
		}
		return d.snapshot.Peers[0].TokensPerS, nil
	}
	if d.role().External {
		return 0, nil
	}
	among, _, err := trainer.Precisions(trainer.AutoPrecision)
	if err != nil {
		return 0, err
	}
	speed, _, err := trainer.MeasureBest(d.ctx, d.genesis.TrainerConfig(d.genesis.Batch), among, trainer.MeasureSteps, trainer.MeasureFor, time.Now)
	return speed.TokensPerSecond, err
}

// checkNetwork looks at the addresses at which the node listens, or did.
func (d *doctor) checkNetwork() {
	addrs := d.listened()
	if len(addrs) == 0 && d.Running {
		d.checkReach()
		return
	}
	if len(addrs) == 0 {
		d.good("addresses", "the node has not listened yet: it will take any free port of every interface; pass --listen to choose")
		return
	}
	if d.Running {
		d.checkPeers()
		d.checkReach()
	}
	var dead, outside []string
	for _, a := range addrs {
		ip, port, ok := tcpOf(a)
		if !ok {
			continue
		}
		if err := answers(ip, port); (err == nil) != d.Running {
			dead = append(dead, a)
		}
		if parsed := net.ParseIP(ip); parsed != nil && parsed.IsGlobalUnicast() && !parsed.IsPrivate() {
			outside = append(outside, a)
		}
	}
	switch {
	case len(dead) > 0 && d.Running:
		d.bad("addresses", "nothing answers at "+strings.Join(dead, ", "), "let the port through this machine's firewall, or restart the node with --listen and a port that is open")
	case len(dead) > 0:
		d.bad("addresses", "another program listens at "+strings.Join(dead, ", "), "stop it, or start the node with --listen and another port; peers learn of it")
	case len(outside) == 0:
		d.good("addresses", strings.Join(addrs, ", ")+": none is public; peers elsewhere reach the node through hole punching or a relay (profile wan), or by a port that your router forwards and --listen names")
	default:
		d.good("addresses", strings.Join(addrs, ", "))
	}
}

// checkReach says how others reach the running node.
func (d *doctor) checkReach() {
	r := d.snapshot.Net.Reach
	far := slices.DeleteFunc(slices.Clone(r.Outside), isNear)
	switch {
	case r.Public:
		d.Reach = ReachOpen
		d.good("reach", "others reach this node at "+strings.Join(r.Outside, ", "))
	case len(far) > 0:
		d.Reach = ReachHelped
		d.good("reach", "others reach this node through relays, or at addresses that nobody has confirmed: "+strings.Join(far, ", "))
	case len(r.Outside)+len(r.Near) > 0:
		d.Reach = ReachNear
		d.good("reach", "only its own machine or network reaches this node, at "+strings.Join(slices.Concat(r.Outside, r.Near), ", ")+"; it reaches others itself")
	default:
		d.Reach = ReachNobody
		d.bad("reach", "nobody reaches this node: it has no address", "connect this machine to a network, or pass --listen with an address of it")
	}
}

// isNear reports whether an address leads to a node from its own machine or network only.
func isNear(addr string) bool {
	parts := strings.Split(addr, "/") // "", ip4, IP, ...
	if len(parts) < 3 || strings.Contains(addr, "/p2p-circuit") {
		return false
	}
	ip := net.ParseIP(parts[2])
	return ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}

// checkPeers says how many peers are heard.
func (d *doctor) checkPeers() {
	connected, refused := 0, ""
	for _, p := range d.snapshot.Peers {
		switch {
		case p.Self:
		case p.State == status.Refused:
			refused = fmt.Sprintf("; refused: %s at %s: %s", cmp.Or(status.ShortID(p.ID), "one"), p.Addr, p.Reason)
		case p.Here():
			connected++
		}
	}
	text := fmt.Sprintf("%d are heard%s", connected, refused)
	switch {
	case connected > 0:
		d.good("peers", text)
	case refused != "":
		d.bad("peers", text, "do what the reason says, or pass the address of another peer with --peer")
	default:
		d.good("peers", text+": the node trains alone; if others should be there, pass one of their addresses with --peer")
	}
}

// listened are the addresses of the running node, or those that one had.
func (d *doctor) listened() []string {
	if d.Running {
		link, err := joinlink.Parse(d.snapshot.Link)
		if err != nil {
			return nil
		}
		return link.Peers
	}
	c, err := store.LoadContacts(d.dir)
	if err != nil {
		return nil
	}
	return c.Listen
}

// tcpOf is the host and port of a multiaddr of TCP over IP.
func tcpOf(addr string) (ip, port string, ok bool) {
	parts := strings.Split(addr, "/") // "", ip4, IP, tcp, PORT, ...
	if len(parts) < 5 || parts[1] != "ip4" && parts[1] != "ip6" || parts[3] != "tcp" {
		return "", "", false
	}
	return parts[2], parts[4], true
}

// answers tries to connect.
func answers(ip, port string) error {
	if parsed := net.ParseIP(ip); parsed != nil && parsed.IsUnspecified() {
		ip = "127.0.0.1"
	}
	c, err := net.DialTimeout("tcp", net.JoinHostPort(ip, port), doctorPatience)
	if err != nil {
		return err
	}
	return c.Close()
}
