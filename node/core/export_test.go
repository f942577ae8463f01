package core

// TokensAt is what the core of spreading is told.
func (m *Machine) TokensAt(rounds ...uint32) (uint64, bool) { return chain{m}.TokensAt(rounds) }

// SpecNumbers are the numbers that gossip/SPEC.md names in its table of life.
var SpecNumbers = map[string]int64{
	"replay": replayMs, "replay times": replayPart, "holder": holderMs, "donors": maxFailedDonors, "key": keyOnlyMs, "margin": markMargin,
	"left": leaveMs, "doubt": doubtBeats, "linger": lingerBeats, "farewell": farewellBeats, "share": shareMs, "trust": trustTimes,
}
