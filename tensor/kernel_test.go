package tensor

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// eachKernel checks a property of each kernel.
func eachKernel(t *testing.T, kernels []kernel, property func(t *rapid.T, k kernel)) {
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { property(t, k) })
		})
	}
}

func TestChooseKernel(t *testing.T) {
	all := available()
	for _, want := range all {
		got, err := choose(want.name, all)
		if err != nil || got.name != want.name {
			t.Errorf("choose(%q) = %q, %v", want.name, got.name, err)
		}
	}
	if got, err := choose("", all); err != nil || got.name != all[0].name {
		t.Errorf("without a name choose = %q, %v, want the fastest, %q", got.name, err, all[0].name)
	}
}

func TestChooseUnknownKernel(t *testing.T) {
	_, err := choose("sse9", []kernel{{name: "avx2"}, {name: "go"}})
	if err == nil {
		t.Fatal("an unknown kernel was chosen")
	}
	for _, part := range []string{"ATOLL_KERNEL=sse9", "avx2, go", "unset"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("mustChoose went on with another kernel")
		}
	}()
	mustChoose("sse9")
}

func TestKernelInUse(t *testing.T) {
	want := os.Getenv(kernelVariable)
	if want == "" {
		want = available()[0].name
	}
	if Kernel() != want {
		t.Errorf("Kernel() = %q, want %q", Kernel(), want)
	}
}
