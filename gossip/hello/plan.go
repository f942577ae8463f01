package hello

const (
	// MinStepSeconds is how short a step may get before a stronger machine
	// takes a larger batch instead. As a fragment goes out about every step,
	// it bounds a learner to some 50 deltas a second, which every peer has to
	// take in.
	MinStepSeconds = 0.02

	// ActivationBytesPerToken is the assumed memory of a training step for each
	// token, beside parameters and optimizer state. It is for the f32
	// activations of the largest built-in model (12 layers of width 768,
	// context 256), rounded up.
	ActivationBytesPerToken = 1 << 20

	// activationShare is the part of memory that activations may take; the rest
	// is for parameters, gradients, optimizer state and own deltas.
	activationShare = 4
)

// Plan returns a learner's batch (rows of context tokens per step) and its
// micro-batch (rows that it computes at once).
//
// The batch begins as localBatch, what the run asks of everyone. It doubles
// while a step would still take at most MinStepSeconds at the measured rate and
// have at most maxTokensPerStep tokens. It is halved where localBatch alone has
// more tokens. The micro-batch is the batch halved while its activations do not
// fit the share of memory that is theirs. A rate or memory of 0 is unknown and
// changes nothing.
func Plan(r Record, localBatch, context int, maxTokensPerStep uint64) (batch, micro int) {
	batch = max(localBatch, 1)
	for batch > 1 && tokens(batch, context) > maxTokensPerStep {
		batch /= 2
	}
	for tokens(2*batch, context) <= maxTokensPerStep && float64(tokens(2*batch, context)) <= MinStepSeconds*r.TokensPerSecond {
		batch *= 2
	}
	micro = batch
	for micro > 1 && r.MemoryBytes > 0 && activations(micro, context) > r.MemoryBytes/activationShare {
		micro = halve(micro)
	}
	return batch, micro
}

func tokens(rows, context int) uint64 { return uint64(rows) * uint64(max(context, 1)) }

func activations(rows, context int) uint64 {
	return tokens(rows, context) * ActivationBytesPerToken
}

// halve keeps the micro-batch a divisor of the batch: an odd one becomes 1.
func halve(rows int) int {
	if rows%2 != 0 {
		return 1
	}
	return rows / 2
}
