package natlab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperVariable makes this test's program a helper in a namespace: "serve NETWORK
// ADDRESS" tells all who ask which address they come from, "ask NETWORK FROM TO" asks, "crowd
// COUNT SECONDS LINK" is members of a run that work through a relay.
const helperVariable = "ATOLL_NATLAB_HELPER"

func helper(args []string) error {
	switch args[0] {
	case "serve":
		return serve(args[1], args[2])
	case "crowd":
		return crowd(args[1], args[2], args[3])
	}
	seen, err := ask(args[1], args[2], args[3])
	fmt.Println(seen)
	return err
}

func serve(network, address string) error {
	if network == "udp" {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for b := make([]byte, 1); ; {
			_, from, err := c.ReadFrom(b)
			if err != nil {
				return err
			}
			if _, err := c.WriteTo([]byte(from.String()), from); err != nil {
				return err
			}
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(c, c.RemoteAddr())
		c.Close()
	}
}

// askTimeout is far more than a packet takes in a laboratory.
const askTimeout = 2 * time.Second

func ask(network, from, to string) (string, error) {
	d := net.Dialer{Timeout: askTimeout}
	if network == "udp" {
		local, err := net.ResolveUDPAddr(network, from)
		if err != nil {
			return "", err
		}
		d.LocalAddr = local
	}
	c, err := d.Dial(network, to)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return "", err
	}
	if network == "udp" {
		if _, err := c.Write([]byte{1}); err != nil {
			return "", err
		}
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// inside is a command of this program as a helper on a machine.
func inside(l *Lab, machine string, args ...string) *exec.Cmd {
	cmd := exec.Command("ip", "netns", "exec", l.places[machine].space, os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+strings.Join(args, " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// listen has a machine serve at an address until the test ends.
func listen(t *testing.T, l *Lab, machine, network, address string) {
	t.Helper()
	cmd := inside(l, machine, "serve", network, address)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
}

// seen is the address by which a machine is seen at another one, or empty where nothing
// comes back.
func seen(l *Lab, machine, network, from, to string) string {
	out, _ := inside(l, machine, "ask", network, from, to).Output()
	return strings.TrimSpace(string(out))
}

// Routers do with ports what their description says, and let in nothing by themselves.
func TestRouters(t *testing.T) {
	l := world(t, Net{Machines: []string{"a", "d"}, Nets: []Net{
		{Router: "keeps", Machines: []string{"b"}},
		{Router: "mixes", NAT: ScramblePorts, Machines: []string{"c"}},
		{Router: "office", Only443: true, Machines: []string{"e"}},
		{Router: "isp", Carrier: true, Nets: []Net{{Router: "home", Machines: []string{"f"}}}},
	}})
	for _, machine := range []string{"a", "d"} {
		listen(t, l, machine, "udp", ":4001")
		listen(t, l, machine, "tcp", ":443")
		listen(t, l, machine, "tcp", ":4001")
	}
	listen(t, l, "b", "udp", ":4002")
	a, d := l.Address("a"), l.Address("d")
	for _, to := range []string{a, d} {
		for machine, router := range map[string]string{"b": "keeps", "f": "isp"} {
			if got, want := seen(l, machine, "udp", ":4001", to+":4001"), l.Address(router)+":4001"; got != want {
				t.Errorf("%s at %s is %q, want %q", machine, to, got, want)
			}
		}
	}
	atA, atD := seen(l, "c", "udp", ":4001", a+":4001"), seen(l, "c", "udp", ":4001", d+":4001")
	if !strings.HasPrefix(atA, l.Address("mixes")+":") || atA == atD {
		t.Errorf("behind a router that scrambles ports: %q at one place, %q at another", atA, atD)
	}
	if got := seen(l, "e", "tcp", "", a+":443"); !strings.HasPrefix(got, l.Address("office")) {
		t.Errorf("behind a firewall, port 443: %q", got)
	}
	for _, network := range []string{"tcp", "udp"} {
		if got := seen(l, "e", network, ":0", a+":4001"); got != "" {
			t.Errorf("behind a firewall, %s port 4001: %q", network, got)
		}
	}
	if got := seen(l, "a", "udp", ":0", l.Address("keeps")+":4002"); got != "" {
		t.Errorf("a router let in what was not asked for: %q", got)
	}
}

// An address changes, and a cable is pulled and put back.
func TestMovesAndCables(t *testing.T) {
	l := world(t, Net{Machines: []string{"a"}, Nets: []Net{{Router: "r", Machines: []string{"b"}}}})
	listen(t, l, "a", "udp", ":4001")
	to := l.Address("a") + ":4001"
	before := seen(l, "b", "udp", ":4001", to)
	if err := l.Move("r"); err != nil {
		t.Fatal(err)
	}
	if got, want := seen(l, "b", "udp", ":4001", to), l.Address("r")+":4001"; got != want || got == before {
		t.Errorf("after the move it is %q, before %q, want %q", got, before, want)
	}
	if err := l.Unplug("b"); err != nil {
		t.Fatal(err)
	}
	if got := seen(l, "b", "udp", ":4001", to); got != "" {
		t.Errorf("without a cable: %q", got)
	}
	if err := l.Plug("b"); err != nil {
		t.Fatal(err)
	}
	if got := seen(l, "b", "udp", ":4001", to); got == "" {
		t.Error("nothing passes the cable that was put back")
	}
}
