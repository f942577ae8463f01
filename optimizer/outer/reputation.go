package outer

import (
	"encoding/binary"
	"math"
	"slices"

	"atoll/tensor"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
)

// Checked work. Honest deltas of a round point, in part, one way: down the gradient. A delta that points
// against the others, nowhere, or at random does not come of the work that it claims. So a fold compares
// deltas pairwise, keeps a reputation of each author in the tip, and weighs by both. It needs no data but its
// set, so all nodes agree on it, and no trust in anybody: the middle of what a delta has in common with
// each of the others holds while most of them are honest, even if the rest agree among themselves.
// Weighing by the cosine to an update that is trusted is from FLTrust (Cao, Fang, Liu, Gong, arXiv
// 2012.13995).

// Reputation is how similar an author's recent deltas were to those of others.
type Reputation struct {
	Author Author
	// Score is a mean of similarity scores, in units of 1/ScoreUnit, where 1 is that of the median author. An
	// author without a reputation has 1.
	Score int16
	Round uint32 // the last one that scored it
}

const (
	// ScoreUnit is the score of the median author in a reputation.
	ScoreUnit = 2048
	// MaxReputations bounds the reputations of a tip. No run has more authors at work at once. The author
	// that was scored longest ago goes first.
	MaxReputations = 1024

	// MinReferences is how many deltas of members a round must have before they are compared with each other. In a round of
	// three the better of its two cosines counts for each: the two that are honest have each other.
	MinReferences = 3
	// leastReferences is how many of them must be references.
	leastReferences = 2
	// mostReferences is how many deltas the reference set has, with which all others are compared. The middle of seven others withstands
	// three that lie, and the cost of a fold stays linear in its deltas.
	mostReferences = 8
	// sampled is how many values are compared at most. The cosine of two random directions is then within
	// 0.008, a sixth of the least that honest learners were seen to have in common.
	sampled = 1 << 14
	// compareLen is how many of them lie together. The author that signs last can try headers until the
	// sample suits it. With 64 pieces a million tries move what a sample sees by five standard deviations:
	// of a delta that passes so, a third has to be honest at least, and most of its harm is gone.
	compareLen = tensor.BlockLen
	// chance is how many standard deviations of the cosine of random directions, 1/sqrt(values), the
	// median must have for a round to score anybody. That is 0.03 in a large fragment. Measured: 0.05 to 0.5
	// where learning goes on (tiny, real text, four learners), and 0 where all is noise.
	chance = 4
	// reputationShare is a round's share in a reputation: 1/reputationShare. Three rounds halve what was before.
	reputationShare = 4
	// mostScore bounds what one round says. Deltas of large batches have little noise and are similar up to
	// some eight times as well as the median.
	mostScore = 8
	// Up to noScore a delta counts for nothing, from fullScore on for all of its weight. Measured:
	// honest learners had 0.6 and more of the median, so there is room for those that are unlike.
	noScore, fullScore = 0.05, 0.25
	// missedFor is how many rounds must pass without a trusted author before a round of others moves
	// anything: then those that were trusted have gone.
	missedFor = 64
	// FreeClaim is how many times the weight of the median delta, for equal steps, an author may claim whose deltas have the
	// median's score. More weight is for a higher score, as noise falls with the root of the tokens, and less for a lower one, down
	// to the median's.
	FreeClaim = 2
)

// value is the score, 1 for that of the median author.
func (r Reputation) value() float64 { return float64(r.Score) / ScoreUnit }

func findReputation(table []Reputation, a Author) (int, bool) {
	return slices.BinarySearchFunc(table, a, func(r Reputation, a Author) int { return CompareAuthors(r.Author, a) })
}

// scoreOf is the score in the reputation of an author, 1 for none.
func scoreOf(table []Reputation, a Author) float64 {
	if i, found := findReputation(table, a); found {
		return table[i].value()
	}
	return 1
}

// Trust is the part of its weight for which the next delta of an author counts, where it has as much in
// common with others as its last ones; 1 in a run with Params.OwnText.
func (t *Tip) Trust(a Author) float64 { return trust(scoreOf(t.Reputations, a)) }

// trust is the part of its weight for which a delta counts.
func trust(score float64) float64 {
	return min(max((score-noScore)/(fullScore-noScore), 0), 1)
}

// comparison compares the deltas of a fold, before they are weighed.
type comparison struct {
	*folding
	scales      []float64   // 1 over the norm of each delta; 0 for one of no value
	asReference []float64   // its weight as a reference for the others
	references  []int       // the reference set, as numbers of deltas
	members     int         // deltas that are no guest's
	squares     []float64   // of the norms of each delta's sampled values, scaled
	apart       [][]float64 // squared distances, [delta][reference]

	scored         bool      // the round scores its deltas
	trusts, claims []float64 // what weights are multiplied by, and how many times the median weight each may have

	cosines [][]float64 // [delta][reference]

	refIndex []int       // of each delta in the reference set, or -1; these are of asOne
	likeness [][]float64 // [delta][reference]
}

// compareSet compares the deltas of the set and brings the reputations of the next tip up to date.
func (fold *folding) compareSet(next *Tip) *comparison {
	a := &comparison{folding: fold, trusts: make([]float64, len(fold.set)), claims: make([]float64, len(fold.set))}
	a.measureLengths()
	a.weighReferences()
	scores, scored := a.scores(next.Chain)
	a.scored = scored
	next.Reputations = slices.Clone(fold.prev.Reputations)
	for i, c := range fold.set {
		if scored && !c.Delta.Guest {
			next.Reputations = updateReputation(next.Reputations, c.Delta.Author, scores[i], fold.round)
		}
		score := 1.0 // of a guest: its key is free, and so would a reputation be
		if !c.Delta.Guest {
			score = scoreOf(next.Reputations, c.Delta.Author)
		}
		if scored {
			score = min(score, scores[i])
		}
		a.trusts[i], a.claims[i] = trust(score), math.MaxFloat64
		if a.silent[i] {
			a.trusts[i] = 0
		}
		if a.members >= MinReferences {
			a.claims[i] = max(1, float64(FreeClaim*float64(score*score)))
		}
	}
	next.Reputations = newestReputations(next.Reputations)
	return a
}

// measureLengths finds the norms of whole deltas from those of their tensors.
func (a *comparison) measureLengths() {
	a.scales = make([]float64, len(a.set))
	for i := range a.set {
		sum := 0.0
		for _, n := range a.norms[i] {
			sum += float64(n * n)
		}
		if sum > 0 {
			a.scales[i] = 1 / math.Sqrt(sum)
		}
	}
}

// weighReferences gives each delta as much weight as a reference as its author is trusted. Guests have none.
func (a *comparison) weighReferences() {
	a.asReference = make([]float64, len(a.set))
	for i, c := range a.set {
		if c.Delta.Guest {
			continue
		}
		a.members++
		if a.scales[i] > 0 && !a.silent[i] {
			a.asReference[i] = trust(scoreOf(a.prev.Reputations, c.Delta.Author))
		}
	}
}

// scores finds the similarity score of each delta in units of the median, for rounds that say something.
func (a *comparison) scores(chain Digest) (scores []float64, scored bool) {
	a.chooseReferences()
	if a.members < MinReferences || len(a.references) < leastReferences {
		return nil, false
	}
	a.compare(chain)
	scores = make([]float64, len(a.set))
	var common, weights []float64
	for i, w := range a.asReference {
		scores[i] = a.inCommon(i)
		if w > 0 {
			common, weights = append(common, scores[i]), append(weights, w)
		}
	}
	median := lowerMedian(common, weights)
	if median < a.byChance() {
		return nil, false
	}
	for i := range scores {
		scores[i] = min(max(a.lifted(i, scores[i]/median), -1), mostScore)
	}
	return scores, true
}

// lifted makes up for a delta of few steps, which has more noise for its length: it may pass for one like
// the median, and for no better. Learners publish HMin steps at least, so fewer are not made up for.
func (a *comparison) lifted(i int, score float64) float64 {
	steps := max(float64(a.set[i].Delta.Steps), float64(a.p.HMin))
	if score >= 1 || steps >= float64(a.p.H) {
		return score
	}
	return min(score*math.Sqrt(float64(a.p.H)/steps), 1)
}

// chooseReferences draws the reference set from the deltas with a weight, by BLAKE3(round, all their authors, author). No
// delta that its author makes changes it; only to stay away does. As many of a crowd that came by one
// invite keep a weight as it is meant for: keys are free to those who have an invite.
func (a *comparison) chooseReferences() {
	seed := binary.LittleEndian.AppendUint32(nil, a.round)
	var order []int
	for i, c := range a.set {
		if a.asReference[i] > 0 {
			seed, order = append(seed, c.Delta.Author[:]...), append(order, i)
		}
	}
	place := make(map[int]Digest, len(order))
	for _, i := range order {
		place[i] = blake3.Sum256(append(seed[:len(seed):len(seed)], a.set[i].Delta.Author[:]...))
	}
	slices.SortFunc(order, func(i, j int) int { return CompareIDs(place[i], place[j]) })
	came := map[[32]byte]uint32{}
	for _, i := range order {
		d := a.set[i].Delta
		if came[d.Invite]++; d.Uses > 0 && came[d.Invite] > d.Uses {
			a.asReference[i] = 0
		} else if len(a.references) < mostReferences {
			a.references = append(a.references, i)
		}
	}
}

// pieces are the first values of the pieces that are compared, ascending: all of a small fragment, else
// those that BLAKE3(chain, 0), BLAKE3(chain, 1) and so on name, until there are enough.
func (a *comparison) pieces(chain Digest) (starts []int) {
	if a.f.Len <= sampled {
		for at := 0; at < a.f.Len; at += compareLen {
			starts = append(starts, at)
		}
		return starts
	}
	all := uint64((a.f.Len + compareLen - 1) / compareLen)
	for k := uint32(0); len(starts) < sampled/compareLen; k++ {
		sum := blake3.Sum256(binary.LittleEndian.AppendUint32(chain[:len(chain):len(chain)], k))
		at := int(binary.LittleEndian.Uint64(sum[:])%all) * compareLen
		if i, found := slices.BinarySearch(starts, at); !found {
			starts = slices.Insert(starts, i, at)
		}
	}
	return starts
}

// compare finds the squared distances between directions, in a sample of their values, and so the cosines.
func (a *comparison) compare(chain Digest) {
	starts := a.pieces(chain)
	memory := tensor.Borrow((len(a.references)+1)*sampled, 0) // the direction of each reference, and zeros
	defer memory.Return()
	n := 0
	for _, at := range starts {
		n += min(compareLen, a.f.Len-at)
	}
	direction := func(k int) []float64 { return memory.Wide[k*sampled : k*sampled+n] }
	zeros, values := direction(len(a.references)), make([]float32, n)
	clear(zeros)
	a.squares, a.apart = make([]float64, len(a.set)), make([][]float64, len(a.set))
	// against reads the values of delta i and compares them with so many references.
	against := func(i, count int) {
		a.gather(i, starts, values)
		a.squares[i] = distance(a.scales[i], values, zeros)
		for k := range count {
			a.apart[i][k] = distance(a.scales[i], values, direction(k))
		}
	}
	for i := range a.apart {
		a.apart[i] = make([]float64, len(a.references))
	}
	for k, i := range a.references {
		against(i, k)
		for other, j := range a.references[:k] {
			a.apart[j][k] = a.apart[i][other]
		}
		clear(direction(k))
		tensor.AxpyWide(a.scales[i], values, direction(k))
	}
	for i, scale := range a.scales {
		if scale > 0 && !slices.Contains(a.references, i) {
			against(i, len(a.references))
		}
	}
	a.cosines = make([][]float64, len(a.set))
	for i := range a.cosines {
		a.cosines[i] = make([]float64, len(a.references))
		for k := range a.references {
			a.cosines[i][k] = a.cosine(i, k)
		}
	}
}

// distance is the squared distance between x, scaled, and y.
func distance(scale float64, x []float32, y []float64) float64 {
	var sum tensor.Lanes
	sum.AddDistances(0, scale, x, y)
	return sum.Sum()
}

// gather reads the values of delta i in pieces that begin at starts, one after the other.
func (a *comparison) gather(i int, starts []int, values []float32) {
	for len(starts) > 0 {
		near := 1 // pieces that are read at once
		if a.sources[i].costly() {
			for near < len(starts) && starts[near]/codec.SegmentLen == starts[0]/codec.SegmentLen {
				near++
			}
		}
		unit := a.p.Codec.Unit()
		first := starts[0] / unit * unit
		end := min((starts[near-1]+compareLen+unit-1)/unit*unit, a.f.Len)
		next := starts[:near]
		a.read(i, first, end-first, func(at int, v []float32) {
			for len(next) > 0 && next[0] < at+len(v) {
				stop := min(next[0]+compareLen, a.f.Len)
				from, to := max(next[0], at), min(stop, at+len(v))
				values = values[copy(values, v[from-at:to-at]):]
				if to < stop {
					return // the rest of this piece comes next
				}
				next = next[1:]
			}
		})
		starts = starts[near:]
	}
}

// inCommon is the lower median, by their weights, of the cosines between delta i and the other
// references, and of two the larger: one of these may lie.
func (a *comparison) inCommon(i int) float64 {
	var cosines, weights []float64
	for k, j := range a.references {
		if j != i {
			cosines, weights = append(cosines, a.cosines[i][k]), append(weights, a.asReference[j])
		}
	}
	if len(cosines) == 2 {
		return max(cosines[0], cosines[1])
	}
	return lowerMedian(cosines, weights)
}

// cosine is that of delta i and reference k: (|x|^2 + |y|^2 - |x - y|^2) / (2 |x| |y|).
func (a *comparison) cosine(i, k int) float64 {
	x, y := a.squares[i], a.squares[a.references[k]]
	if both := float64(x * y); both > 0 {
		return (x + y - a.apart[i][k]) / (2 * math.Sqrt(both))
	}
	return 0
}

// updateReputation brings an author's reputation a part of the way to its score in a round.
func updateReputation(table []Reputation, author Author, score float64, round uint32) []Reputation {
	i, found := findReputation(table, author)
	if !found {
		table = slices.Insert(table, i, Reputation{Author: author, Score: ScoreUnit})
	}
	r := &table[i]
	now := int(math.RoundToEven(score * ScoreUnit))
	r.Score += int16((now - int(r.Score)) / reputationShare)
	r.Round = round
	return table
}

// newestReputations leaves out the reputations over the limit, of the authors scored longest ago, of equals the
// last.
func newestReputations(table []Reputation) []Reputation {
	for len(table) > MaxReputations {
		oldest := 0
		for i, r := range table {
			if r.Round <= table[oldest].Round {
				oldest = i
			}
		}
		table = slices.Delete(table, oldest, oldest+1)
	}
	return table
}

// trustedRecently says whether an author with a trusted reputation took part not long before a round.
func trustedRecently(table []Reputation, round uint32) bool {
	return slices.ContainsFunc(table, func(r Reputation) bool {
		return round-r.Round < missedFor && trust(r.value()) > 0
	})
}

// bounded lowers weights to the claims, in units of the members' median weight for a step by trusts, and multiplies them by
// the trusts. A learner is slow or fast by its steps, which one round bounds (work). Where no member is trusted it does
// neither, unless somebody else was recently: then all are 0.
func (p Params) bounded(w []float64, set []Delta, trusts, claims []float64, recently bool) {
	ofMembers := slices.Clone(trusts)
	for i, d := range set {
		if d.Guest {
			ofMembers[i] = 0
		}
	}
	if !slices.ContainsFunc(ofMembers, func(t float64) bool { return t > 0 }) {
		if recently {
			clear(w)
		}
		return
	}
	steady := make([]float64, len(w)) // what a step weighs
	for i, d := range set {
		steady[i] = w[i] / p.work(d)
	}
	median := lowerMedian(steady, ofMembers)
	for i, d := range set {
		w[i] = float64(min(w[i], float64(claims[i]*median*p.work(d))) * trusts[i])
	}
}
