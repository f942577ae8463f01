// Package python starts the programs in Python that atoll is compared with, so that
// they are as fast as they can be.
package python

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"atoll/tensor"
)

// TorchRemedy says how to get PyTorch where it is missing.
const TorchRemedy = "Debian and Ubuntu have it as python3-torch (apt-get install python3-torch, then --python /usr/bin/python3)"

// NoTorch is what a program says, on the last line, that needs PyTorch and has none.
const NoTorch = "No module named 'torch'"

// PipeWait bounds the wait for what a killed program has itself started.
const PipeWait = time.Second

// coreType tells OpenBLAS, which PyTorch multiplies with on Debian, what the processor
// is: versions that are older than one with AVX-512 take it for less.
const coreType = "OPENBLAS_CORETYPE"

// Installed fails, saying what to do, if there is no such interpreter.
func Installed(interpreter string) error {
	if _, err := exec.LookPath(interpreter); err != nil {
		return fmt.Errorf("there is no Python at %s: pass one that has PyTorch with --python; %s", interpreter, TorchRemedy)
	}
	return nil
}

// Env is the environment of a program that may use so many threads. A core type that is
// set already stays.
func Env(threads int) []string {
	env := append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%d", threads), fmt.Sprintf("OPENBLAS_NUM_THREADS=%d", threads))
	if core := CoreType(); core != "" {
		env = append(env, coreType+"="+core)
	}
	return env
}

// CoreType is the processor that OpenBLAS is told it runs on, in programs with Env. The environment may name one, perhaps
// a slower one, so show it beside figures. Otherwise it is SKYLAKEX where there is AVX-512. Otherwise it is "", and
// OpenBLAS finds out.
func CoreType() string {
	core := os.Getenv(coreType)
	if core == "" && tensor.Kernel() == "avx512" {
		return "SKYLAKEX"
	}
	return core
}

// LastLine is the last line that is not empty: where programs say what went wrong.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
