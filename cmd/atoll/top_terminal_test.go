package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"atoll/node/status"
)

// serverOfStatus is a program that says of a folder what its file status.json has, as a node does,
// until it is asked to end or killed.
const serverOfStatus = "atoll-status"

// serveStatus is that program. It says on stdout when it answers.
func serveStatus() {
	dir := os.Args[1]
	s, err := status.ReadFinal(dir)
	if err != nil {
		panic(err)
	}
	server, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return s, true }})
	if err != nil {
		panic(err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("answers")
	<-asked
	if err := server.Close(); err != nil {
		panic(err)
	}
}

// nodeOfStatus is a folder on which a process answers with a status.
func nodeOfStatus(t *testing.T, s status.Snapshot) (dir string, process *exec.Cmd) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "node0")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{keyName, genesisName} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeStatus(t, dir, s)
	process = exec.Command(serverOfStatus, dir)
	process.Stderr = os.Stderr
	says, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		_ = process.Wait()
	})
	if line, err := bufio.NewReader(says).ReadString('\n'); err != nil {
		t.Fatalf("it says %q, %v", line, err)
	}
	return dir, process
}

// writeStatus writes the last status of a node.
func writeStatus(t *testing.T, dir string, s status.Snapshot) {
	t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, status.FinalFile), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
