package web

import (
	"slices"
	"sort"

	"atoll/node/status"
)

// Frame is a moment of a run that is over, for a replay.
type Frame struct {
	Tokens       float64            // folded
	Closed       []uint32           // last closed round, per fragment
	Contributors []int              // of this round, per fragment
	By           map[string]float64 // folded tokens, by the author's id
}

// frameView is a frame as the page has it.
type frameView struct {
	AtMs   int64     `json:"at_ms,omitempty"` // about; 0 = not known
	Tokens float64   `json:"tokens"`
	Closed []uint32  `json:"closed"`
	Gave   []int     `json:"gave"`
	By     []float64 `json:"by"` // by place in View.Peers
}

// framesOf are frames for a view. Authors that it does not have as peers are added to it.
func framesOf(v *View, frames []Frame, history []status.Point, labels status.Labels) (views []frameView) {
	places := map[string]int{}
	for i, p := range v.Peers {
		places[p.ID] = i
	}
	for _, id := range authorsOf(frames) {
		if _, known := places[id]; !known && len(v.Peers) < maxPeers {
			places[id] = len(v.Peers)
			v.Peers = append(v.Peers, PeerView{ID: id, Name: plain(labels.Of(id)), Class: ClassGone, State: status.Gone})
		}
	}
	for _, f := range frames {
		by := make([]float64, len(v.Peers))
		for id, tokens := range f.By {
			if i, shown := places[id]; shown {
				by[i] = tokens
			}
		}
		views = append(views, frameView{AtMs: timeOf(f.Tokens, history), Tokens: f.Tokens, Closed: f.Closed, Gave: f.Contributors, By: by})
	}
	return views
}

// authorsOf are all authors of some frames, in the order of their ids.
func authorsOf(frames []Frame) (ids []string) {
	seen := map[string]bool{}
	for _, f := range frames {
		for id := range f.By {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// timeOf is about when so many tokens were folded, in Unix milliseconds; 0 where the history
// does not say: it may have begun late.
func timeOf(tokens float64, history []status.Point) int64 {
	i := sort.Search(len(history), func(i int) bool { return float64(history[i].Tokens) >= tokens })
	if i == len(history) || i == 0 {
		return 0
	}
	from, to := history[i-1], history[i]
	part := (tokens - float64(from.Tokens)) / (float64(to.Tokens) - float64(from.Tokens))
	return from.AtMs + int64(part*float64(to.AtMs-from.AtMs))
}
