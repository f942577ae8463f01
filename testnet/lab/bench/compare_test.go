package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script writes a program for sh, which stands for Python, and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "torch_ref.py")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const tinyParams = 824448

// compareTiny compares atoll at 300 tokens/s with what a program answers.
func compareTiny(t *testing.T, ctx context.Context, rounds int, torch string) (Comparison, error) {
	ours := fmt.Sprintf(`echo '{"params":%d,"tokens_per_s":300,"flops_fraction":0.5,"rss_bytes":7}'`, tinyParams)
	return Compare(ctx, Meter{}, CompareConfig{
		Model: "tiny", Threads: 2, Rounds: rounds, Seconds: 1.5,
		Torch: Torch{Python: "sh", Script: script(t, torch)},
		Ours:  Child{"atoll", []string{"sh", "-c", ours}},
	})
}

func TestCompare(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	// 100, 150, 200 tokens/s in turn; warnings go before the answer.
	torch := fmt.Sprintf(`echo "$*" >>%s; n=$(wc -l <%s); echo warning; echo "{\"config\":\"A\",\"params\":%d,\"tokens_per_s\":$((n * 50 + 50))}"`, log, log, tinyParams)
	c, err := compareTiny(t, t.Context(), 3, torch)
	if err != nil {
		t.Fatal(err)
	}
	if c.TokensPerS != 300 || c.TorchTokensPerS != 150 || c.Ratio != 2 || c.RatioMin != 1.5 || c.RatioMax != 3 ||
		len(c.Ratios) != 3 || c.Params != tinyParams || c.FLOPsFraction != 0.5 || c.RSSBytes != 7 || c.Model != "tiny" {
		t.Errorf("%+v", c)
	}
	asked, err := os.ReadFile(log)
	if want := "speed --config A --threads 2 --seconds 1.5\n"; err != nil || string(asked) != strings.Repeat(want, 3) {
		t.Errorf("asked %q, %v", asked, err)
	}
}

// The fastest of several modes counts.
func TestCompareModes(t *testing.T) {
	torch := script(t, fmt.Sprintf(`rate=7; [ "$8" = --quick ] && rate=11; echo "{\"params\":%d,\"tokens_per_s\":$rate}"`, tinyParams))
	for _, c := range []struct {
		modes [][]string
		want  float64
	}{{nil, 7}, {[][]string{{"--quick"}}, 11}, {[][]string{{"--quick"}, {}}, 11}, {[][]string{{}, {"--quick", "-x"}}, 11}} {
		got, err := Torch{"sh", torch, c.modes}.ask(t.Context(), "tiny", 1, 1)
		if err != nil || got.TokensPerS != c.want {
			t.Errorf("%q: %v tokens/s, %v; want %v", c.modes, got.TokensPerS, err, c.want)
		}
	}
}

// Torch begins the first round, so that what it lacks shows at once; then they take turns.
func TestCompareTakesTurns(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	said := func(who string) string {
		return fmt.Sprintf(`echo %s >>%s; echo '{"params":%d,"tokens_per_s":1}'`, who, log, tinyParams)
	}
	_, err := Compare(t.Context(), Meter{}, CompareConfig{
		Model: "tiny", Threads: 1, Rounds: 3,
		Torch: Torch{Python: "sh", Script: script(t, said("torch"))},
		Ours:  Child{"atoll", []string{"sh", "-c", said("atoll")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	order, err := os.ReadFile(log)
	if got := strings.Join(strings.Fields(string(order)), " "); err != nil || got != "torch atoll atoll torch torch atoll" {
		t.Errorf("order %s, %v", got, err)
	}
}

func TestCompareFailures(t *testing.T) {
	for _, c := range []struct {
		name, torch, want string
	}{
		{"no module", `echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1`, "sh has no PyTorch: Debian and Ubuntu have it as python3-torch"},
		{"crash", `echo "loading" >&2; echo "MemoryError" >&2; exit 3`, "compare with torch: exit status 3: MemoryError"},
		{"silent crash", `exit 3`, "compare with torch: exit status 3"},
		{"no answer", ``, `its last line is "", not a JSON object`},
		{"no JSON", `echo '{}'; echo fast`, `its last line is "fast", not a JSON object`},
		{"no rate", `echo '{"params":824448}'`, "tells no tokens_per_s above 0"},
		{"another model", `echo '{"params":5,"tokens_per_s":9}'`, "tiny has 824448 parameters, atoll's step trains 824448 and torch's 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := compareTiny(t, t.Context(), 1, c.torch); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestCompareWithout(t *testing.T) {
	there := script(t, "")
	for _, c := range []struct {
		model, python, script, want string
	}{
		{"tiny", "no-such-python", there, "there is no Python at no-such-python: pass one that has PyTorch with --python; Debian and Ubuntu have it as python3-torch"},
		{"tiny", "sh", there + ".gone", "is no file: pass the path of torch_ref.py with --torch"},
		{"tiny", "sh", filepath.Dir(there), "is no file"},
		{"nano.json", "sh", there, "knows tiny, small and base"},
	} {
		_, err := Compare(t.Context(), Meter{}, CompareConfig{Model: c.model, Rounds: 1, Torch: Torch{Python: c.python, Script: c.script}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.python, c.script, err, c.want)
		}
	}
}

// The end of the context kills a child, whatever it has started itself.
func TestCompareEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := compareTiny(t, ctx, 1, "sleep 600; true"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestChildErrors(t *testing.T) {
	var answer Step
	if err := (Child{"atoll", []string{"/no/such/program"}}).Ask(t.Context(), &answer); err == nil || !strings.Contains(err.Error(), "there is no program /no/such/program") {
		t.Errorf("error %v", err)
	}
}
