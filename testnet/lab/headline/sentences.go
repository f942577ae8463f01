package headline

import (
	"fmt"
	"slices"
	"strings"

	"atoll/testnet/lab/fleet"
)

// headlinesFile says in some lines what the table says, from the top of the repository.
const headlinesFile = "testnet/lab/HEADLINES.md"

// sentence says what a line of a row means. ATOLL, BESIDE and VALUE stand for medians, SHARE for the value in per cent.
type sentence struct{ row, what, text string }

var sentences = []sentence{
	{"thin", thinWhat(20), "Over links of 20 Mbit/s and 40 ms, four nodes train VALUE times as fast as data parallelism over the same links."},
	{"thin", thinWhat(100), "At 100 Mbit/s it is VALUE times."},
	{"kept", "100 Mbit/s, 40 ms, whole run", "On links of 100 Mbit/s and 40 ms, nodes keep SHARE of the speed that they have without limits."},
	{"bytes", deltas[0].name(4), "A token costs ATOLL bytes on the network, everything counted: VALUE times less than with data parallelism in bf16."},
	{"bytes", deltas[2].name(4), "With sparse deltas it is VALUE times less."},
	{"kills", "a kill every 1m0s: useful share of the time that processes lived", "With one of eight nodes killed every minute, SHARE of the time that processes live is in the model."},
	{"kills", "a kill every 15s: useful share of the time that processes lived", "With a kill every 15 seconds it is SHARE."},
	{"recovery", stages[3].what, "A node that was killed has its first delta folded ATOLL s after its restart."},
	{"unequal", "speeds 1:1:2:4, model", "Machines with speeds of 1:1:2:4 make a model that needs VALUE times the bits of one that equal machines make."},
	{"join", joinAlone, "A newcomer with an empty folder takes part ATOLL s after the bytes of the state had the time to come, over 20 Mbit/s."},
	{"peers", "beside hivemind, whole run", "Beside hivemind, on the same model, text, tokens and machine, it is VALUE times as fast."},
	{"peers", "beside torchft-diloco, whole run", "Beside DiLoCo of torchft it is VALUE times as fast."},
	{"peers", "beside torchft-ddp, model of equal tokens", "DDP of torchft, which sends all gradients of each step, makes a better model of the same tokens: BESIDE bits per byte. That of atoll has ATOLL."},
	{"standin", standinWhat("sparse", 100), "A model of 124 M parameters with steps of 100 ms goes VALUE times as fast over 100 Mbit/s as data parallelism."},
}

// headlines is the text of HEADLINES.md.
func headlines(all []Result) (string, error) {
	var b strings.Builder
	b.WriteString("# Headlines\n\nMade by `go run -C testnet/lab . headline --table --write` of [RESULTS.md](RESULTS.md), which has commands, machines and spreads.\n\n")
	goodput, err := fleetSentence()
	if err != nil {
		return "", err
	}
	b.WriteString("- " + goodput + "\n")
	for _, s := range sentences {
		if text, have := s.of(all); have {
			b.WriteString("- " + text + "\n")
		}
	}
	b.WriteString("\n![What is left of the work while chips fail](headline/results/" + goodputFile + ")\n")
	if len(speedPlot(all).Series) > 0 {
		b.WriteString("\n![Tokens per second over links](headline/results/" + speedFile + ")\n")
	}
	return b.String(), nil
}

// of fills in a sentence, if its row has been played.
func (s sentence) of(all []Result) (string, bool) {
	for _, r := range all {
		i := slices.IndexFunc(r.Lines, func(l Summary) bool { return l.What == s.what })
		if r.Row != s.row || i < 0 || r.Lines[i].Value == nil {
			continue
		}
		l := r.Lines[i]
		text := strings.NewReplacer("ATOLL", median3(l.Atoll), "BESIDE", median3(l.Beside), "VALUE", median3(l.Value), "SHARE", number(100*l.Value.Median)+" %").Replace(s.text)
		return text + s.caveat(r, l), true
	}
	return "", false
}

// caveat says what to hold against a figure.
func (s sentence) caveat(r Result, l Summary) string {
	var why []string
	if r.Quick {
		why = append(why, "short form")
	}
	if l.Met != nil && !*l.Met {
		why = append(why, "asked: "+l.Asked.Text(exact))
	}
	if len(why) == 0 {
		return ""
	}
	return " (" + strings.Join(why, "; ") + ")"
}

func median3(s *Spread) string {
	if s == nil {
		return ""
	}
	return number(s.Median)
}

// fleetSentence is what the simulator of fleets says of the largest published size but one.
func fleetSentence() (string, error) {
	kept := map[fleet.System]string{}
	for system, learners := range map[fleet.System]int{fleet.Atoll: 64, fleet.DP: 1} {
		c := fleet.Default()
		c.System, c.Learners = system, learners
		r, err := fleet.Run(c)
		if err != nil {
			return "", err
		}
		kept[system] = number(100 * r.Goodput)
	}
	return fmt.Sprintf("Of the work of 1.2 million chips that each fail once a year, 64 learners keep %s %%, and data parallelism %s %% (simulated, with recovery times that were fitted to published tables).", kept[fleet.Atoll], kept[fleet.DP]), nil
}
