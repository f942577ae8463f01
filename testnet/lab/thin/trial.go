package thin

import "slices"

// Trial is one run of a world.
type Trial struct {
	Row     string   `json:"row"`
	World   string   `json:"world"`
	Turn    int      `json:"turn"` // from 1
	Args    []string `json:"args"` // of atoll testnet, without the pace
	Outcome Outcome  `json:"outcome"`
}

// is says whether a trial answers for this turn of a world.
func (t Trial) is(row string, w World, turn int) bool {
	return t.Row == row && t.World == w.Name && t.Turn == turn && slices.Equal(t.Args, w.Args)
}
