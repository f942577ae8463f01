package outer

import (
	"atoll/tensor"
	"atoll/tensor/codec"
)

// heldShare is the part of what no delta had room for that the local parameters lack until a delta has. What they lack is
// made again from the global parameters in each round, so that up to
// 1/(1-heldShare) times as much as a value needs adds up before it travels: with 0.7 a simulated run diverged whose
// learners come near their optimum within a round, with 0.6 none did that merged as Params.SetMerge has it. With what is in the local
// parameters a learner trains on a model that no other has and that the global parameters do not follow. Measured on text 0.5 and 0.7 are alike; 0.3 is
// 2 % worse, and to hold all and let a fifth of it fade at each delta 3 % (testnet/lab/RESULTS.md).
const heldShare = 0.5

// withhold parts what of U, which l.sum has, does not travel with the payload: heldShare of it leaves the local
// parameters until the next U, the rest stays. It is lost when the process ends, as it is in memory alone.
func (l *Learner) withhold(f *learning, payload []byte) error {
	rest := l.sum[:f.Len]
	if err := codec.Add(payload, f.Len, -1, rest); err != nil {
		return err
	}
	f.eachRun(l.local, func(local []float32, at int) {
		held := f.held[at : at+len(local)]
		for i, x := range rest[at : at+len(local)] {
			was := held[i]
			held[i] = float32(heldShare * x)
			local[i] = float32(float64(local[i]) + (float64(was) - float64(held[i])))
		}
	})
	return nil
}

// addKept adds to l.sum what the local parameters have of the progress that no delta had room for.
func (f *learning) addKept(sum []float64) {
	if f.held != nil {
		tensor.AxpyWide((1-heldShare)/heldShare, f.held, sum)
	}
}
