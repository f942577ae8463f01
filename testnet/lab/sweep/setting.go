package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"atoll/node/core"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// The ways to train.
const (
	Atoll  = "atoll"
	DP     = "dp"
	DiLoCo = "diloco"
	Local  = "local"

	Aggregated = "aggregated"
)

// Baselines are all of them, atoll first.
var Baselines = []string{Atoll, DP, DiLoCo, Local, Aggregated}

// How the text to train on is shared out, for Setting.Shards.
const (
	ShardsAll   = "all"   // every learner draws from all of it
	ShardsSplit = "split" // each from a stretch of its own
)

// Setting is one way to train. Its names in plans, tables and files are the
// names of JSON. It is comparable.
type Setting struct {
	Baseline string  `json:"arm"`
	Model    string  `json:"model"`  // tiny, small, base, mini, nano or micro
	Data     string  `json:"data"`   // prose, goroot, both or a path
	Shards   string  `json:"shards"` // all or split
	Tokens   uint64  `json:"tokens"` // the budget of all learners together
	M        int     `json:"m"`      // learners
	Batch    int     `json:"batch"`  // rows of a learner's step
	Inner    string  `json:"inner"`  // adamw or muon
	LR       float64 `json:"lr"`     // peak
	Warmup   float64 `json:"warmup"` // share of the budget
	Final    float64 `json:"final"`  // share of the peak, at the end
	Decay    float64 `json:"decay"`  // weight decay

	H        int     `json:"h"`
	P        int     `json:"p"`
	Pieces   int     `json:"pieces"` // that each matrix is cut into by rows, or nearly so many; 0 means 1
	HMin     int     `json:"hmin"`   // 0 means H/4
	Eta      float64 `json:"eta"`
	Mu       float64 `json:"mu"`
	Merge    string  `json:"merge"`    // clip; of stored trials rda and mean as well, which there were
	Clip     float64 `json:"clip"`     // of the norm reference, 1e6 = none
	RefDecay float64 `json:"refdecay"` // of the norm reference, a round; 0 means the default
	Codec    string  `json:"codec"`
	Grace    float64 `json:"grace"`    // least grace in steps
	GraceMax float64 `json:"gracemax"` // in steps

	Step    int     `json:"step"`    // virtual ms of a step of speed 1; 0 means 1000. The protocol's own times are in ms
	Speeds  string  `json:"speeds"`  // of atoll's learners, as divisors: 1:1:2:4; "" = all 1
	Latency float64 `json:"latency"` // of a link, one way, in steps
	Rate    float64 `json:"rate"`    // of a learner's uplink, bytes per step; 0 = without limit
	Faults  string  `json:"faults"`  // as package fault reads them, with ; for commas and _ for spaces

	LearnersPerRound int `json:"answerers"` // learners that publish in a round, by rotation, under the name of stored results; 0 = the usual number of atoll, all of aggregated
	// Of the arm aggregated.
	Groups     string `json:"groups"`     // members of a group whose deltas become one: 8, or 4:4 for groups of groups; "" = none
	Regroup    string `json:"regroup"`    // codec of merged deltas; "" = that of deltas
	Liars      int    `json:"liars"`      // learners that send ten times the opposite of their progress
	LiarGroups int    `json:"liargroups"` // groups whose aggregators all do that with the merged delta, in every round
}

// Default is the setting that plans start from: a small model, AdamW, and no momentum at any H, the plainest of outer
// steps. Plans say what differs from that.
func Default() Setting {
	o := outer.Spec{Fragments: 1, Learners: 4, StepTokens: 1, Budget: 1}.Params()
	in := trainer.DefaultOptim()
	return Setting{
		Baseline: Atoll, Model: "mini", Data: "goroot", Shards: ShardsAll, Tokens: 1 << 19, M: 4, Batch: 4,
		Inner: optimizer.NameAdamW, LR: 2e-3, Warmup: 0.03, Final: 0.1, Decay: in.AdamW.WeightDecay,
		H: o.H, P: 8, Eta: 1, Mu: 0, Merge: clip, Clip: o.ClipFactor,
		Codec: o.Codec.String(), Grace: 1, GraceMax: 60, Latency: 0.05,
	}
}

// models are those that only sweeps train: so small that many trials fit an hour.
var models = map[string]llama.Config{
	"mini":  sized(64, 2, 4, 172, 64),
	"nano":  sized(32, 1, 2, 88, 32),
	"micro": sized(16, 1, 2, 32, 16),
}

func sized(hidden, layers, heads, intermediate, context int) llama.Config {
	c := llama.Tiny
	c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Intermediate, c.Context = hidden, layers, heads, heads, intermediate, context
	return c
}

// config is the shape of the model.
func (s Setting) config() (llama.Config, error) {
	if c, ok := models[s.Model]; ok {
		return c, nil
	}
	if c, ok := llama.Named(s.Model); ok {
		return c, nil
	}
	return llama.Config{}, fmt.Errorf("model is %q; use tiny, small, base, mini, nano or micro", s.Model)
}

// stepTokens is the batch of one learner.
func (s Setting) stepTokens(c llama.Config) int { return s.Batch * c.Context }

func (s Setting) optimizer() trainer.OptimConfig {
	o := trainer.DefaultOptim()
	o.Name, o.Momentum, o.AdamW.WeightDecay = s.Inner, trainer.DefaultMomentum, s.Decay
	return o
}

func (s Setting) schedule() optimizer.Schedule {
	return optimizer.Schedule{Peak: s.LR, WarmupFraction: s.Warmup, FinalFraction: s.Final}
}

// defaultStepMs is how much virtual time a step of a learner of speed 1 takes where
// nothing is said: so that seconds are steps.
const defaultStepMs = 1000

func (s Setting) stepMs() int64 { return int64(cmp.Or(s.Step, defaultStepMs)) }

// minRoundMs is what a round takes at least, far below the time of the rounds that are swept.
const minRoundMs = 250

// params is the outer step of a run of fragments.
func (s Setting) params(fragments int, tokens uint64) (outer.Params, error) {
	kind, err := codec.Parse(s.Codec)
	if err != nil {
		return outer.Params{}, fmt.Errorf("codec: %w", err)
	}
	c, err := s.config()
	if err != nil {
		return outer.Params{}, err
	}
	if s.H < 1 {
		return outer.Params{}, fmt.Errorf("sweep: H is %d; use at least 1", s.H)
	}
	p := outer.Spec{
		Fragments: fragments, Codec: kind, H: s.H, LearnersPerRound: s.LearnersPerRound, Learners: s.M, StepTokens: uint64(s.stepTokens(c)), Budget: tokens,
		CreatedMs: sim.Start, OwnText: s.Shards == ShardsSplit,
	}.Params()
	p.HMin = cmp.Or(s.HMin, p.HMin)
	p.Eta, p.Mu, p.ClipFactor = s.Eta, s.Mu, s.Clip
	p.RefDecay = cmp.Or(s.RefDecay, p.RefDecay)
	p.GraceMinMs, p.GraceMaxMs, p.MinRoundMs = s.ms(s.Grace), s.ms(s.GraceMax), minRoundMs
	return p, p.Validate()
}

// ms is the virtual time of so many steps.
func (s Setting) ms(steps float64) core.Time { return core.Time(steps * float64(s.stepMs())) }

// Limits of a setting: a mistyped one would fill a machine.
const (
	maxLearners = 64
	maxTokens   = 1 << 34
	maxStepMs   = 1 << 20
	maxPieces   = 1 << 10
)

// Validate returns an error that names the first field that cannot be.
func (s Setting) Validate() error {
	c, err := s.config()
	if err != nil {
		return err
	}
	switch {
	case !slices.Contains(Baselines, s.Baseline):
		return fmt.Errorf("arm is %q; use one of %s", s.Baseline, strings.Join(Baselines, ", "))
	case s.M < 1 || s.M > maxLearners:
		return fmt.Errorf("m is %d; use 1 to %d learners", s.M, maxLearners)
	case s.Batch < 1:
		return fmt.Errorf("batch is %d; use at least 1 row", s.Batch)
	case s.Tokens < uint64(s.M*s.stepTokens(c)) || s.Tokens > maxTokens:
		return fmt.Errorf("tokens is %d; use at least one step of every learner, %d, and at most %d", s.Tokens, s.M*s.stepTokens(c), maxTokens)
	case s.Shards != ShardsAll && s.Shards != ShardsSplit:
		return fmt.Errorf("shards is %q; use %s or %s", s.Shards, ShardsAll, ShardsSplit)
	case s.Step < 0 || s.Step > maxStepMs:
		return fmt.Errorf("step is %d ms; use 1 to %d, or 0 for %d", s.Step, maxStepMs, defaultStepMs)
	case s.Pieces < 0 || s.Pieces > maxPieces:
		return fmt.Errorf("pieces is %d; use 1 to %d, or 0 for 1", s.Pieces, maxPieces)
	case !(s.Latency >= 0) || !(s.Rate >= 0):
		return fmt.Errorf("latency is %v and rate %v; use 0 or more", s.Latency, s.Rate)
	}
	if err := s.schedule().Validate(); err != nil {
		return err
	}
	if _, err := s.slow(); err != nil {
		return err
	}
	if _, err := s.faults(); err != nil {
		return err
	}
	if _, err := s.joins(); s.Baseline == DP && err != nil {
		return err
	}
	if err := s.checkGroups(); err != nil {
		return err
	}
	_, err = s.params(s.P, s.Tokens)
	return err
}

// common are the fields that every baseline reads, and barriers those that DiLoCo reads
// besides.
var (
	common   = strings.Fields("arm model data shards tokens m batch inner lr warmup final decay")
	barriers = strings.Fields("h eta mu codec")
	joinable = strings.Fields("step faults")                                                                    // and data parallelism
	folds    = strings.Fields("h p eta mu merge clip refdecay codec answerers groups regroup liars liargroups") // and aggregations
)

// shown is what Get says of a field, or a dash where the baseline does not read it.
func (s Setting) shown(name string) string {
	reads := s.Baseline == Atoll || slices.Contains(common, name) || s.Baseline == DiLoCo && slices.Contains(barriers, name) || s.Baseline == DP && slices.Contains(joinable, name) || s.Baseline == Aggregated && slices.Contains(folds, name)
	if !reads {
		return "-"
	}
	return cmp.Or(s.Get(name), "-")
}

// clip is the only way in which atoll merges deltas.
const clip = "clip"

// noClip is a norm reference that clips nothing.
const noClip = 1e6

// read is the setting with what its baseline does not read set to what the baseline does,
// so that equal trials have equal settings.
func (s Setting) read() Setting {
	switch s.Baseline {
	case DiLoCo:
		s.P, s.Merge, s.Clip = 1, "mean", noClip
	case Aggregated:
		s.P = 1
	}
	return s
}

// slow is the divisor of each learner's speed.
func (s Setting) slow() ([]int, error) {
	slow := make([]int, s.M)
	words := strings.Split(s.Speeds, ":")
	if s.Speeds != "" && len(words) != s.M {
		return nil, fmt.Errorf("speeds is %q; give one for each of the %d learners", s.Speeds, s.M)
	}
	for i := range slow {
		slow[i] = 1
		if s.Speeds == "" {
			continue
		}
		var err error
		if slow[i], err = strconv.Atoi(words[i]); err != nil || slow[i] < 1 {
			return nil, fmt.Errorf("speeds is %q; use divisors such as 1:1:2:4", s.Speeds)
		}
	}
	return slow, nil
}

func (s Setting) faults() ([]sim.Fault, error) {
	f, err := sim.ParseFaults(s.Faults, s.M)
	if err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	return f, nil
}

// joins are the times at which learners join, in order. The error is for other faults.
func (s Setting) joins() ([]sim.Time, error) {
	faults, err := s.faults()
	if err != nil {
		return nil, err
	}
	var at []sim.Time
	for _, f := range faults {
		if f.Kind != fault.Join {
			return nil, fmt.Errorf("faults: %s: data parallelism knows no %v: use only join", s.Faults, f.Kind)
		}
		at = append(at, f.At)
	}
	slices.Sort(at)
	return at, nil
}

// Set gives the field of that name a value.
func (s *Setting) Set(name, value string) error {
	field, ok := s.field(name)
	if !ok {
		return fmt.Errorf("there is no setting %q; use one of %s", name, strings.Join(Names(), ", "))
	}
	var err error
	switch field.Kind() {
	case reflect.String:
		field.SetString(value)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(value)
		field.SetBool(b)
	case reflect.Int:
		var n int64
		n, err = strconv.ParseInt(value, 10, 64)
		field.SetInt(n)
	case reflect.Uint64:
		var x float64 // so that 1e6 is a number of tokens
		if x, err = strconv.ParseFloat(value, 64); err == nil && (x < 0 || x > maxTokens) {
			err = strconv.ErrRange
		}
		field.SetUint(uint64(x))
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(value, 64)
		field.SetFloat(x)
	}
	if err != nil {
		return fmt.Errorf("%s is %q: %w", name, value, err)
	}
	return nil
}

// Get is the value of a field as text; "" where there is none of that name.
func (s Setting) Get(name string) string {
	field, ok := s.field(name)
	if !ok {
		return ""
	}
	return fmt.Sprint(field.Interface())
}

// Names are the names of all fields, in order.
func Names() []string {
	t := reflect.TypeFor[Setting]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

func (s *Setting) field(name string) (reflect.Value, bool) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(s).Elem().Field(i), true
}

// String is the setting as JSON.
func (s Setting) String() string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error() // a NaN, which Validate refuses
	}
	return string(b)
}
