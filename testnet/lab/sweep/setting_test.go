package sweep

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestDefaultIsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// Every field can be set to the text that Get shows, and its name is its name in
// JSON.
func TestSetTakesWhatGetShows(t *testing.T) {
	from := Default()
	from.Speeds, from.Faults, from.HMin, from.Rate = "1:1:2:4", "kill_1_@9s;start_1_@20s", 3, 1.5e6
	from.Step, from.RefDecay = 40, 0.5
	from.LearnersPerRound, from.Groups, from.Regroup, from.Liars, from.LiarGroups = 3, "4:4", "f32", 1, 2
	var to Setting
	for _, name := range Names() {
		if err := to.Set(name, from.Get(name)); err != nil {
			t.Error(err)
		}
	}
	if to != from {
		t.Errorf("got %v\nwant %v", to, from)
	}
	var read Setting
	if err := json.Unmarshal([]byte(from.String()), &read); err != nil || read != from {
		t.Errorf("read back %v, %v", read, err)
	}
}

func TestSettingErrors(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"arm", "ddp", `arm is "ddp"; use one of atoll, dp, diloco, local, aggregated`},
		{"model", "huge", `model is "huge"; use tiny`},
		{"shards", "some", `shards is "some"`},
		{"m", "0", "m is 0; use 1 to 64"},
		{"batch", "0", "batch is 0"},
		{"tokens", "1000", "at least one step of every learner, 1024"},
		{"lr", "0", "learning rate above 0"},
		{"warmup", "2", "WarmupFraction is 2"},
		{"speeds", "1:2", "one for each of the 4 learners"},
		{"speeds", "1:1:1:x", "use divisors such as"},
		{"faults", "vanish_1_@2s", `"vanish": there is no such event`},
		{"arm faults", "dp join_@1s;kill_1_@2s", "faults: join_@1s;kill_1_@2s: data parallelism knows no kill: use only join"},
		{"latency", "-1", "latency is -1"},
		{"pieces", "-1", "pieces is -1"},
		{"step", "-1", "step is -1 ms"},
		{"groups", "8", "groups, regroup, liars and liargroups are for the arm aggregated"},
		{"arm groups", "aggregated 1", `groups is "1"; write the members of a group, 2 to 64`},
		{"arm regroup", "aggregated int3", "regroup"},
		{"arm liars", "aggregated 5", "liars is 5 and liargroups 0; use 0 to the 4 learners"},
		{"answerers", "5", "answerers is 5; use 1 to the 4 learners"},
		{"codec", "int3", "codec"},
		{"h", "0", "H is 0"},
		{"mu", "1", "Mu is 1"},
	} {
		s := Default()
		var err error
		values := strings.Fields(c.value)
		for i, name := range strings.Fields(c.name) {
			err = errors.Join(err, s.Set(name, values[i]))
		}
		if err == nil {
			err = s.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error %v, want %q", c.name, c.value, err, c.want)
		}
	}
	for name, value := range map[string]string{"hh": "1", "h": "x", "tokens": "-1", "eta": "much"} {
		s := Default()
		if err := s.Set(name, value); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: error %v, want the name", name, value, err)
		}
	}
}
