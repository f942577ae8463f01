package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"atoll/testnet/lab/program"
)

// TestMain lets scripts run this program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lab": main})
}

// TestScripts runs testdata/script: each file is a session at a shell.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

// typed does what a line says.
func typed(t *testing.T, line string) (out string, err error) {
	t.Helper()
	var b bytes.Buffer
	err = run(t.Context(), strings.Fields(line), &b, &bytes.Buffer{})
	return b.String(), err
}

func TestAnswers(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "goodput",
		"help":                              "headline",
		"bench --help":                      "gemm",
		"bench step --help":                 "lab bench step --model",
		"goodput --help":                    "--chips",
		"torch --help":                      "",
		"goodput --published":               "points apart on average",
		"aggregation --learners 16":         "aggregators  4",
		"bandwidth --params 10e9 --step 1s": "atoll, int4",
		"goodput --chips 1.2e6 --learners 8 --system dp --json":    `"goodput":0.2`,
		"goodput --chips 800 --partition 12h --system all":         "atoll      100.0 %",
		"aggregation --learners 100 --plan tree --levels 3 --json": `"plan":"tree","learners":100,"publish":100,"group":4,"levels":3,"deltas":2`,
		"bench step --seconds 0 --threads 1 --batch 1 --json":      `{"bench":"step","model":"tiny","threads":1,"params":824448,"batch":1,"context":128,`,
	} {
		if out, err := typed(t, line); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s; want %q", line, err, out, want)
		}
	}
	for _, c := range commands {
		if out, err := typed(t, c.name+" --help"); err != nil || c.usage != nil && out != c.usage() {
			t.Errorf("%s --help: %v, %s", c.name, err, out)
		}
	}
}

// What is typed otherwise is refused, saying so. Other errors are not.
func TestRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"goodput --chips 0":                                     "chips is 0; use a whole number",
		"goodput --system ring":                                 "--system must be one of",
		"goodput --speeds 1:fast":                               `"1:fast" is not a list of speeds; write them like 1:1:2:4`,
		"goodput --link fast":                                   `"fast" is not the rate of a link`,
		"goodput --mtbf never":                                  `"never" is not a time; write it like 12h or 7d`,
		"goodput --published --chips 9":                         "only --seed and --json go with it",
		"aggregation --learners 1":                              "learners is 1; use 2 to 65536",
		"aggregation --plan ring":                               "--plan must be one of",
		"aggregation --plan aggregators --group 1":              "group is 1; use 2 to the 64 learners",
		"bandwidth --params 10e9":                               "missing flags: --step",
		"bandwidth --params 1.5 --step 1s":                      `"1.5" is not a whole number`,
		"bandwidth --params 1e9 --step 1s --utilisation 1":      "utilisation is 1; use a share above 0 and below 1",
		"bench step --seconds=-1":                               "--seconds is -1",
		"bench step --batch=-1":                                 "--batch is -1",
		"bench step --threads=-1":                               "--threads is -1",
		"bench step --threads 1,x":                              "--threads",
		"bench step --compare jax":                              "--compare must be one of",
		"bench step --compare torch":                            "pass --torch PATH/torch_ref.py",
		"bench step --compare torch --torch x --optimizer muon": "--optimizer is muon; --compare torch has AdamW",
		"bench step --compare torch --torch x --batch 3":        "--batch is 3; --compare torch has the shared benchmark's batch",
		"bench step --compare torch --torch x --rounds 0":       "--rounds is 0",
		"bench gemm --threads=-1":                               "--threads is -1",
		"bench codec --seconds=NaN":                             "--seconds is NaN",
		"bench fold --threads 1":                                "unknown flag --threads",
		"bench --seconds=-1":                                    "--seconds is -1",
		"bench paint":                                           "unexpected argument paint",
		"sweep walk":                                            `there is no "walk"`,
		"headline":                                              "name a row to play",
	} {
		if _, err := typed(t, line); !errors.Is(err, program.ErrUsage) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--help says what there is to type") {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
	for line, want := range map[string]string{
		"paint":                                 `there is no command "paint": go run -C testnet/lab . help lists all`,
		"bench step --model absent.json":        "absent.json",
		"bench step --model tiny,huge":          `model "huge": use tiny, small, base`,
		"bench disk --seconds 0 --dir absent/x": "choose another folder",
		"bench step --compare torch --torch x --python absent-python": "python3-torch",
	} {
		if _, err := typed(t, line); err == nil || errors.Is(err, program.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}
