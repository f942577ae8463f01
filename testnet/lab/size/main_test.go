package size

import (
	"bytes"
	"strings"
	"testing"
)

func TestSizeOfTiny(t *testing.T) {
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"--model", "tiny", "--learners", "3"}, &out, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"824448 parameters, 8 fragments", "in int4, 0.4", "of 3 deltas", "the joiner checks them", "computed  a round of all fragments"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing of %q in\n%s", want, out.String())
		}
	}
	for args, want := range map[string]string{"--learners 0": "--learners is 0; use 1 to 64", "--model huge": "use tiny, small, base"} {
		if err := Main(t.Context(), strings.Fields(args), &out, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
