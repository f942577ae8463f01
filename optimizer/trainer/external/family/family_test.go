package family

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"testing"
)

// role is in the environment of the processes that the tests start.
const role = "ATOLL_TEST_FAMILY"

// TestMain is the processes of the tests as well. A parent starts a child, which holds the same
// stdout: that closes once both have ended.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), role+"=child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		select {}
	case "child":
		os.Stdout.WriteString("ready\n")
		select {}
	case "leaver":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		os.Stdout.WriteString("ready\n")
		<-interrupted
		os.Stdout.WriteString("left\n")
		return
	}
	os.Exit(m.Run())
}

// begin starts a process and waits until it says that it is ready.
func begin(t *testing.T, is string) (*exec.Cmd, *Family, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+is)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	Prepare(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := Of(cmd.Process)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Kill() })
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	return cmd, f, lines
}

func TestKillEndsChildren(t *testing.T) {
	cmd, f, lines := begin(t, "parent")
	if err := f.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(lines); err != nil { // ends when no process has its stdout any more
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended as if by itself")
	}
	if err := f.Kill(); err != nil {
		t.Errorf("once more: %v", err)
	}
}

func TestInterruptedProcessLeaves(t *testing.T) {
	cmd, f, lines := begin(t, "leaver")
	if err := f.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := f.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := f.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(lines); err != nil || string(said) != "left\n" {
		t.Errorf("it says %q, %v", said, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
