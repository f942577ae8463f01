package gossip

import "fmt"

// watchdog has the connection made anew of a peer that passed the handshake and of
// which no beat came since: whatever lost the gossip between the two, requests still
// flow, so that both would train on side by side as if alone. It is no fault of the
// peer, and is tried less and less often. A peer that asked for nothing but genesis
// may still be starting: it has nothing to say yet, and its way in must not be cut.
func (b *beats) watchdog() {
	if b.said == nil {
		return // who says nothing itself has no claim to hear something
	}
	for _, p := range b.peers.linked {
		if !p.unheard || !p.asked || b.now < max(p.unheardFrom+deafBeats*b.beatPeriod(), p.reconnectAfter) {
			continue
		}
		if p.chunks > 0 || p.serving > 0 {
			continue // bulk is on its way, which must not begin again
		}
		p.reconnectPauseMs = min(max(2*p.reconnectPauseMs, deafBeats*b.beatPeriod()), reconnectPauseMaxMs)
		p.reconnectAfter = b.now + p.reconnectPauseMs
		b.event(EventSilent, p.id, fmt.Sprintf("connected for %d ms and no beat came: connects anew", b.now-p.unheardFrom))
		b.emit(Reconnect{Peer: p.id})
	}
}

// awaitBeat notes that a process of p is connected from which no beat came yet.
func (e *env) awaitBeat(p *peer, started int64) {
	p.unheard, p.unheardFrom, p.started = true, e.now, started
}

// gossips notes that a beat of p came.
func (p *peer) gossips() { p.unheard, p.reconnectPauseMs, p.reconnectAfter = false, 0, 0 }
