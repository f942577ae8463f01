package hardware

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const childGroup = "ATOLL_TEST_GROUP" // the file by which the child of TestLimitOfAContainer enters a group

// A process in a control group, as those of a container are, has the memory of the group.
func TestLimitOfAContainer(t *testing.T) {
	if file := os.Getenv(childGroup); file != "" {
		if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("may take %d\n", MemoryBytes())
		return
	}
	const limit = 200 << 20
	root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, file = "/sys/fs/cgroup", "memory.max"
	}
	group := filepath.Join(root, fmt.Sprintf("atoll-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no control group can be made here: ", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0); err != nil {
		t.Skip("no memory can be limited here: ", err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLimitOfAContainer$")
	child.Env = append(os.Environ(), childGroup+"="+filepath.Join(group, "cgroup.procs"))
	out, err := child.CombinedOutput()
	if want := fmt.Sprintf("may take %d\n", limit); err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v, %v; want %q", string(out), err, want)
	}
	if all := MemoryBytes(); all <= limit {
		t.Errorf("beside it %d bytes", all)
	}
}
