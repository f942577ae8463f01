package sim

import (
	"testing"

	"atoll/gossip/wire/spectest"
)

// One test for each clause of gossip/SPEC.md that is about the way into a run and
// out of it.
func TestSpecLife(t *testing.T) {
	t.Parallel()
	spectest.Run(t, "L", map[string]spectest.Clause{
		"L-1": specJoining, "L-1.2": specUnanswered, "L-2": spectest.All(specEqualDigests, specOutrun, specReplay), "L-3": specDurable,
		"L-4": spectest.All(specKeyOnly, specKeyAlone, specKeyUnknown, specKeyMeetsNewcomer), "L-4.2": specComesBack, "L-5": specMark,
		"L-6": spectest.All(specSetDigest, specHeadersOfRound), "L-7": specLeaves, "L-8": spectest.All(specStays, specLeavesGuests), "L-9": specStepsOnly,
		"L-9.2": specPublishesNothing, "L-10": specStopped, "L-10.2": specLastSteps, "L-11": specOver, "L-11.2": specLateAtTheEnd, "L-12": specMiscalculated, "L-13": specLinger, "L-14": specPaused,
		"L-15": specAbsent, "L-15.2": specFailingSource,
	})
}

// heartbeat is the shortest heartbeat period.
const heartbeat = defaultHeartbeatMs

// quietMs is how long all have to agree in the end.
const quietMs = heartbeat

// How long nodes wait for what, where the text names no time or names the same.
const (
	keyMs    = 600_000        // for somebody who knows what a key signed
	holderMs = 600_000        // for a silent peer that has more than genesis
	shareMs  = 600_000        // for peers that lack the end of the run
	silentMs = 10 * heartbeat // until a peer counts as silent
	doubtMs  = 10 * heartbeat // until claims are doubted
	holdUpMs = 30 * heartbeat // for peers that show another end
	lingerMs = heartbeat      // after the end
)
