package core

// TokensAt is what the core of spreading is told.
func (m *Machine) TokensAt(rounds ...uint32) (uint64, bool) { return chain{m}.TokensAt(rounds) }

// Numbers are how long a node waits for what, by the names of gossip/SPEC.md.
var Numbers = map[string]int64{
	"replay": replayMs, "replay times": replayPart, "holder": holderMs, "donors": maxFailedDonors, "key": keyOnlyMs, "margin": markMargin,
	"left": leaveMs, "doubt": doubtBeats, "linger": lingerBeats, "farewell": farewellBeats, "share": shareMs, "trust": trustTimes,
}
