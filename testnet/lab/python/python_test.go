package python

import (
	"slices"
	"strings"
	"testing"

	"atoll/tensor"
)

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"\n \n":                   "",
		"one":                     "one",
		"one\ntwo\n":              "two",
		"one\n  two  \n\n \t\r\n": "two",
	} {
		if got := LastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A program gets its number of threads whatever the environment said before. On a
// processor with AVX-512 it gets the kernels for it, unless somebody chose others.
func TestEnv(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", "7")
	for _, chosen := range []string{"", "HASWELL"} {
		t.Setenv(coreType, chosen)
		env := Env(2)
		want := map[string]string{"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", coreType: chosen}
		if chosen == "" && tensor.Kernel() == "avx512" {
			want[coreType] = "SKYLAKEX"
		}
		if got := CoreType(); got != want[coreType] {
			t.Errorf("core type %q: OpenBLAS is said to be told %q, want %q", chosen, got, want[coreType])
		}
		for name, value := range want {
			if got := last(env, name); got != value {
				t.Errorf("core type %q: %s is %q, want %q", chosen, name, got, value)
			}
		}
	}
}

// last is the value that a program sees of a name that is there more than once.
func last(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

func TestInstalled(t *testing.T) {
	err := Installed("no-such-python")
	if err == nil || !strings.Contains(err.Error(), "no-such-python") || !strings.Contains(err.Error(), "--python") {
		t.Errorf("%v: want what is missing and the flag", err)
	}
}
