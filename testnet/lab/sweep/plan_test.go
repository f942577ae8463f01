package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePlan(t *testing.T) {
	plan, err := ParsePlan(`
# two lines of trials
set tokens=1e5 data=prose   # and a comment behind
seeds 3 5
trial h=4,8 mu=0,0.9
seeds 1
set inner=muon
trial arm=dp
trial arm=dp
`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range plan {
		s := e.Setting
		if s.Tokens != 1e5 || s.Data != "prose" {
			t.Errorf("set had no effect: %v", s)
		}
		got = append(got, fmt.Sprintf("%s/%s/%d/%v/%d", s.Baseline, s.Inner, s.H, s.Mu, e.Seed))
	}
	want := "atoll/adamw/4/0/3 atoll/adamw/4/0/5 atoll/adamw/4/0.9/3 atoll/adamw/4/0.9/5 " +
		"atoll/adamw/8/0/3 atoll/adamw/8/0/5 atoll/adamw/8/0.9/3 atoll/adamw/8/0.9/5 dp/muon/24/0/1"
	if g := strings.Join(got, " "); g != want {
		t.Errorf("got  %s\nwant %s", g, want)
	}
}

// The plans that are kept can still be played.
func TestKeptPlans(t *testing.T) {
	names, err := filepath.Glob("plans/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := ParsePlan(string(text)); err != nil || len(plan) == 0 {
			t.Errorf("%s: %d trials, %v", name, len(plan), err)
		}
	}
}

// The trials that are kept can still be read, and tables made of them.
func TestKeptTrials(t *testing.T) {
	names, err := filepath.Glob("results/*.jsonl")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		trials, err := ReadTrials(name)
		if err != nil || len(trials) == 0 {
			t.Fatalf("%s: %d trials, %v", name, len(trials), err)
		}
		for i, trial := range trials {
			if err := trial.Setting.Validate(); err != nil || (trial.ValBPB > 0) == (trial.Failed != "") {
				t.Errorf("%s line %d: %v, %v bits, failed %q", name, i+1, err, trial.ValBPB, trial.Failed)
			}
		}
	}
}

// What DiLoCo does not read makes no other trial of it.
func TestPlanOfWhatIsNotRead(t *testing.T) {
	plan, err := ParsePlan("trial arm=diloco clip=1,3 p=1,8")
	if err != nil || len(plan) != 1 || plan[0].Setting.Merge != "mean" {
		t.Errorf("%d trials, %v: %v", len(plan), plan, err)
	}
	if plan, err = ParsePlan("trial clip=1,3 p=1,8"); err != nil || len(plan) != 4 {
		t.Errorf("%d trials, %v", len(plan), err)
	}
}

func TestPlanErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\nrun h=4", `plan line 2: it begins with "run"`},
		{"set h", `plan line 1: "h" is no NAME=VALUE`},
		{"trial arm", `"arm" is no NAME=VALUE`},
		{"trial arm=dp,ddp", `arm is "ddp"`},
		{"trial size=3", `no setting "size"`},
		{"seeds", "seeds names none"},
		{"seeds -1", `"-1" is no seed`},
		{"seeds " + many(101) + "\ntrial m=" + numbers(64) + " batch=1,2,3,4", "more than 10000 trials"},
	} {
		if _, err := ParsePlan(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.30q: error %v, want %q", c.text, err, c.want)
		}
	}
}

// many is so many seeds, numbers so many values.
func many(n int) string { return strings.ReplaceAll(numbers(n), ",", " ") }
func numbers(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(words, ",")
}
