package core

import (
	"encoding/binary"

	"atoll/gossip/fetch"
	"atoll/optimizer/outer"
)

// TokensAt is what the gossip core is told.
func (m *Machine) TokensAt(rounds ...uint32) (uint64, bool) { return chain{m}.TokensAt(rounds) }

// Numbers are from the table of life in gossip/SPEC.md.
var Numbers = map[string]int64{
	"replay": replayMs, "replay times": replayPart, "outrun": outrunTimes, "key": keyOnlyMs, "margin": markMargin, "left": leaveMs, "linger": lingerHeartbeats,
	"owed": fetch.MostOwed, "last steps": lastStepsHeartbeats, "missed": mostMissed, "missed at first": mostMissedAtFirst,
}

// EncodeSnapshot returns the blob of a fragment, whose tip need not be one.
func EncodeSnapshot(tip []byte, links []outer.Link) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(len(tip)))
	return append(append(b, tip...), encodeLinks(links)...)
}
