package natlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Lab is a world of namespaces. It is not for several goroutines.
type Lab struct {
	binary string
	dir    string
	run    string // RunID of the run, hex
	number int64  // of this world, among those of the process
	spaces []string
	places map[string]*place
	nodes  []*Node

	helpers []*exec.Cmd // programs of routers
}

// place is a machine or a router, in a namespace of its own.
type place struct {
	name    string
	space   string // its namespace
	net     Net    // that it is on
	address string // there
	next    int    // the number of addresses that were given out there, at the internet and at routers
	side    string // its interface there
	router  *place // in front of it, nil on the internet
	hub     *place // whose namespace has the other end of its cable
}

// tools are what a laboratory needs beside the kernel.
var tools = []string{"ip", "nft"}

// Able says why there can be no laboratory here, or nil.
func Able() error {
	if os.Geteuid() != 0 {
		return errors.New("natlab: network namespaces need root")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("natlab: %w; install iproute2 and nftables", err)
		}
	}
	return sweep()
}

// spacePrefix begins the names of namespaces; the process that made them follows, and the number of the world.
const spacePrefix = "atoll"

// worlds counts the worlds that this process made.
var worlds atomic.Int64

// sweep removes the namespaces of laboratories whose process was killed.
func sweep() error {
	out, err := command("ip", "netns", "list")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		owner, _, _ := strings.Cut(strings.TrimPrefix(name, spacePrefix), "-")
		pid, err := strconv.Atoi(owner)
		if !strings.HasPrefix(name, spacePrefix) || err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		if _, err := command("ip", "netns", "del", name); err != nil {
			return err
		}
	}
	return nil
}

// New makes a world for the program binary, whose nodes have their folders in dir.
// Close removes it again.
func New(binary, dir string, world Net) (*Lab, error) {
	if err := errors.Join(world.Validate(), Able()); err != nil {
		return nil, err
	}
	l := &Lab{binary: binary, dir: dir, number: worlds.Add(1), places: map[string]*place{}}
	internet := &place{name: "internet", net: world}
	err := l.makeSpace(internet)
	if err == nil {
		err = l.bridge(internet)
	}
	if err == nil {
		err = l.fill(world, internet)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// fill makes what is on a network, whose bridge is in the namespace of hub.
func (l *Lab) fill(n Net, hub *place) error {
	for _, name := range n.Machines {
		if err := l.attach(&place{name: name, net: n, side: "eth0"}, hub); err != nil {
			return err
		}
	}
	for _, inner := range n.Nets {
		r := &place{name: inner.Router, net: n, side: "wan"}
		if err := l.attach(r, hub); err != nil {
			return err
		}
		if err := l.route(r, inner); err != nil {
			return err
		}
		if err := l.fill(inner, r); err != nil {
			return err
		}
	}
	return nil
}

// makeSpace makes the namespace of a place.
func (l *Lab) makeSpace(p *place) error {
	p.space = fmt.Sprintf("%s%d-%d-%s", spacePrefix, os.Getpid(), l.number, p.name)
	if _, err := command("ip", "netns", "add", p.space); err != nil {
		return err
	}
	l.spaces = append(l.spaces, p.space)
	return p.ip("link", "set", "lo", "up")
}

// bridge makes the network of a hub, which the cables of its places end in.
func (l *Lab) bridge(hub *place) error {
	if err := hub.ip("link", "add", "lan", "type", "bridge"); err != nil {
		return err
	}
	return hub.ip("link", "set", "lan", "up")
}

// attach makes a place and lays its cable.
func (l *Lab) attach(p, hub *place) error {
	if err := l.makeSpace(p); err != nil {
		return err
	}
	l.places[p.name], p.hub = p, hub
	if p.net.Router != "" {
		p.router = hub
	}
	if err := p.ip("link", "add", p.side, "type", "veth", "peer", "name", "to"+p.name, "netns", hub.space); err != nil {
		return err
	}
	if err := hub.ip("link", "set", "to"+p.name, "master", "lan", "up"); err != nil {
		return err
	}
	if err := p.ip("link", "set", p.side, "up"); err != nil {
		return err
	}
	hub.next++
	return p.configure(p.net.addressesOf().place(hub.next))
}

// configure gives a place its address, and the way out of its network.
func (p *place) configure(address string) error {
	s := p.net.addressesOf()
	p.address = address
	if err := p.ip("addr", "add", fmt.Sprintf("%s/%d", address, s.bits), "dev", p.side); err != nil {
		return err
	}
	if p.router == nil {
		return nil
	}
	return p.ip("route", "replace", "default", "via", s.router(), "dev", p.side)
}

// route makes a place the router of a network.
func (l *Lab) route(r *place, inner Net) error {
	if err := l.bridge(r); err != nil {
		return err
	}
	s := inner.addressesOf()
	if err := r.ip("addr", "add", fmt.Sprintf("%s/%d", s.router(), s.bits), "dev", "lan"); err != nil {
		return err
	}
	if _, err := r.command("sysctl", "-q", "-w", "net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	if _, err := r.pipe(inner.rules(), "nft", "-f", "-"); err != nil || !inner.UPnP {
		return err
	}
	return l.forward(r, inner)
}

// forward has a router forward ports to the machines that ask it to.
func (l *Lab) forward(r *place, inner Net) error {
	if _, err := r.pipe(forwarding, "nft", "-f", "-"); err != nil {
		return err
	}
	config := l.path(r.name + ".conf")
	if err := os.WriteFile(config, []byte(inner.upnpConfig()), 0o600); err != nil {
		return err
	}
	cmd := exec.Command("ip", "netns", "exec", r.space, upnpProgram, "-d", "-f", config, "-P", l.path(r.name+".pid"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(l.path(r.name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close() // the program has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("natlab: forward ports on %s: %w", r.name, err)
	}
	l.helpers = append(l.helpers, cmd)
	return nil
}

// upnpProgram is what forwards ports. A world without such a router does without it.
const upnpProgram = "miniupnpd"

// Address is where a place is on its network.
func (l *Lab) Address(name string) string { return l.places[name].address }

// outside is the address by which a place is seen on the internet.
func (l *Lab) outside(name string) string {
	p := l.places[name]
	for p.router != nil {
		p = p.router
	}
	return p.address
}

// Move gives a place another address. What its old one was known for is lost, as where
// a provider gives a router a new one.
func (l *Lab) Move(name string) error {
	p := l.places[name]
	if err := p.ip("addr", "flush", "dev", p.side, "scope", "global"); err != nil {
		return err
	}
	s := p.net.addressesOf()
	last, err := strconv.Atoi(p.address[len(s.prefix)+1:])
	if err != nil {
		return err
	}
	return p.configure(fmt.Sprintf("%s.%d", s.prefix, last+2*maxPlaces))
}

// Unplug pulls the cable of a place.
func (l *Lab) Unplug(name string) error {
	return l.places[name].ip("link", "set", l.places[name].side, "down")
}

// Plug puts it back.
func (l *Lab) Plug(name string) error {
	p := l.places[name]
	if err := p.ip("link", "set", p.side, "up"); err != nil || p.router == nil {
		return err
	}
	return p.ip("route", "replace", "default", "via", p.net.addressesOf().router(), "dev", p.side)
}

// Slow makes the cable of a place carry so many bytes a second towards its network.
func (l *Lab) Slow(name string, bytesPerSecond int) error {
	p := l.places[name]
	return p.limit(p.side, bytesPerSecond)
}

// SlowBoth makes the cable of a place carry so many bytes a second in either direction.
func (l *Lab) SlowBoth(name string, bytesPerSecond int) error {
	p := l.places[name]
	return errors.Join(l.Slow(name, bytesPerSecond), p.hub.limit("to"+name, bytesPerSecond))
}

// limit makes an interface of a place send no more than so many bytes a second.
func (p *place) limit(side string, bytesPerSecond int) error {
	_, err := p.command("tc", "qdisc", "replace", "dev", side, "root", "tbf",
		"rate", strconv.Itoa(8*bytesPerSecond)+"bit", "burst", "32kb", "latency", "100ms")
	return err
}

// DropLarge has the cable of a place lose packets above so many bytes, headers of IP included, without a word: those
// towards it, those from it, or both.
func (l *Lab) DropLarge(name string, bytes int, towards, from bool) error {
	p := l.places[name]
	var errs []error
	for _, end := range []struct {
		at    *place
		side  string
		loses bool
	}{{p, p.side, towards}, {p.hub, "to" + name, from}} {
		// A virtual cable hands over many packets as one, which would count as large.
		errs = append(errs, end.at.ip("link", "set", end.side, "gso_max_segs", "1"))
		if end.loses {
			_, err := end.at.pipe(fmt.Sprintf(largeRule, name, end.side, bytes), "nft", "-f", "-")
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// largeRule loses what is too large where it leaves the cable, in nft's language.
const largeRule = `table netdev large%s {
	chain in {
		type filter hook ingress device "%s" priority 0;
		meta length > %d counter drop
	}
}
`

// Sent is how many bytes a place has put on its cable, with all headers.
func (l *Lab) Sent(name string) (int, error) {
	p := l.places[name]
	out, err := p.command("cat", "/sys/class/net/"+p.side+"/statistics/tx_bytes")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// Close kills the nodes and removes the world.
func (l *Lab) Close() error {
	var errs []error
	for _, n := range l.nodes {
		errs = append(errs, n.Kill())
	}
	for _, h := range l.helpers {
		errs = append(errs, h.Process.Kill())
		h.Wait()
	}
	for _, space := range l.spaces {
		_, err := command("ip", "netns", "del", space)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (p *place) ip(args ...string) error {
	_, err := command("ip", append([]string{"-n", p.space}, args...)...)
	return err
}

// command runs a program in the namespace of a place.
func (p *place) command(name string, args ...string) (string, error) {
	return p.pipe("", name, args...)
}

func (p *place) pipe(input, name string, args ...string) (string, error) {
	return pipe(input, "ip", append([]string{"netns", "exec", p.space, name}, args...)...)
}

func command(name string, args ...string) (string, error) { return pipe("", name, args...) }

// commandTimeout is far more than a command of these takes.
const commandTimeout = 30 * time.Second

func pipe(input, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func (l *Lab) path(name string) string { return filepath.Join(l.dir, name) }
