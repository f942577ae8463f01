package core

// SpecNumbers are the numbers that gossip/SPEC.md names in its table of life.
var SpecNumbers = map[string]int64{
	"replay": replayMs, "replay times": replayPart, "holder": holderMs, "donors": maxFailedDonors, "key": keyOnlyMs, "margin": markMargin,
	"left": leaveMs, "doubt": doubtBeats, "linger": lingerBeats, "farewell": farewellBeats, "share": shareMs,
}
