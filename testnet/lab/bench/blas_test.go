package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a shell script that stands for Python and returns its path.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

var smallProducts = []Product{{"NN", 20, 30, 40}, {"TN", 5, 6, 7}}

func TestCompareGemms(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	// The last three arguments are the library, the threads and the precision; a call takes one second, once half of it.
	fake := program(t, `echo "$3 $4 $5 $OPENBLAS_NUM_THREADS" >>`+log+`
while read line; do echo "$line" >>`+log+`; echo '{"seconds":1,"best":0.5}'; done`)
	got, err := CompareGemms(t.Context(), Meter{}, BLAS{Python: fake, Library: "libfake.so", Rounds: 3}, 1, smallProducts)
	if err != nil || len(got) != len(smallProducts) {
		t.Fatal(got, err)
	}
	for i, c := range got {
		q := smallProducts[i]
		if c.Form != q.Form || c.M != q.M || c.K != q.K || c.N != q.N || c.Threads != 1 || c.Rounds != 3 || c.With != "libfake.so" {
			t.Errorf("%+v", c)
		}
		// One second a product.
		if c.BLAS != q.FLOPs()/1e9 || c.GFLOPPerS <= c.BLAS || !(c.RatioMin <= c.Ratio && c.Ratio <= c.RatioMax && c.RatioMin > 1) || c.RatioBest <= 0.5 {
			t.Errorf("%+v", c)
		}
	}
	asked, err := os.ReadFile(log)
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	if err != nil || len(lines) != 1+3*2 || lines[0] != "libfake.so 1 f32 1" || lines[6] != `{"form":"TN","k":6,"m":5,"n":7,"seconds":0}` {
		t.Errorf("asked %q, %v", lines, err)
	}
}

func TestCompareGemmsFailures(t *testing.T) {
	for name, c := range map[string]struct{ python, want string }{
		"no program": {filepath.Join(t.TempDir(), "none"), "there is no program"},
		"no library": {program(t, `echo "cannot use libfake.so: no such file" >&2; exit 1`), "cannot use libfake.so: no such file"},
		"no answer":  {program(t, `read line; echo nothing; read line`), "libfake.so: invalid character"},
		"no times":   {program(t, `read line; echo '{}'; read line`), "no times above 0"},
	} {
		_, err := CompareGemms(t.Context(), Meter{}, BLAS{Python: c.python, Library: "libfake.so", Rounds: 1}, 1, smallProducts)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
