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
// deltas pairwise, keeps a record of each author in the tip, and weighs by both. It needs no data but its
// set, so all nodes agree on it, and no trust in anybody: the middle of what a delta has in common with
// each of the others holds while most of them are honest, even if the rest agree among themselves.
// Weighing by the cosine to an update that is trusted is from FLTrust (Cao, Fang, Liu, Gong, arXiv
// 2012.13995).

// Record is how an author's deltas have agreed with those of others of late.
type Record struct {
	Author Author
	// Agreement is in units of 1/RecordUnit, where 1 is that of the median author. An author without a
	// record has 1.
	Agreement int16
	Round     uint32 // the last one that judged it
}

const (
	// RecordUnit is what the agreement of the median author is in a record.
	RecordUnit = 2048
	// MaxRecords bounds the records of a tip. No run has more authors at work at once. The author
	// that was judged longest ago goes first.
	MaxRecords = 1024

	// MinVoices is how many deltas of members a round must have before one is judged by the others. Of three each is judged by the better
	// of its two cosines: the two that are honest have each other.
	MinVoices = 3
	// leastCommittee is how many of them must have a voice.
	leastCommittee = 2
	// committee is how many deltas the others are compared with. The middle of seven others withstands
	// three that lie, and the cost of a fold stays linear in its deltas.
	committee = 8
	// sampled is how many values are compared at most. The cosine of two random directions is then within
	// 0.008, a sixth of the least that honest learners were seen to have in common.
	sampled = 1 << 14
	// compareLen is how many of them lie together. The author that signs last can try headers until the
	// sample suits it. With 64 pieces a million tries move what a sample sees by five standard deviations:
	// of a delta that passes so, a third has to be honest at least, and most of its harm is gone.
	compareLen = tensor.BlockLen
	// chance is how many standard deviations of the agreement of random directions, 1/sqrt(values), the
	// median must have for a round to judge anybody. Of a large fragment that is 0.03. Measured: 0.05 to 0.5
	// where learning goes on (tiny, real text, four learners), and 0 where all is noise.
	chance = 4
	// recordShare is a round's share in a record: 1/recordShare. Three rounds halve what was before.
	recordShare = 4
	// mostAgreement bounds what one round says. Deltas of large batches have little noise and agree up to
	// some eight times as well as the median.
	mostAgreement = 8
	// Up to noAgreement a delta counts for nothing, from fullAgreement on for all of its weight. Measured:
	// honest learners had 0.6 and more of the median, so there is room for those that are unlike.
	noAgreement, fullAgreement = 0.05, 0.25
	// missedFor is how many rounds must pass without a trusted author before a round of others moves
	// anything: then those that were trusted have gone.
	missedFor = 64
	// FreeClaim is how many times the weight of the median delta, for equal steps, an author may claim whose deltas agree
	// as the median does. More weight is for more agreement, as noise falls with the root of the tokens, and less for less, down to
	// the median's.
	FreeClaim = 2
)

// value is the agreement, 1 for that of the median author.
func (r Record) value() float64 { return float64(r.Agreement) / RecordUnit }

func findRecord(table []Record, a Author) (int, bool) {
	return slices.BinarySearchFunc(table, a, func(r Record, a Author) int { return CompareAuthors(r.Author, a) })
}

// agreementOf is what the record of an author says, 1 for none.
func agreementOf(table []Record, a Author) float64 {
	if i, found := findRecord(table, a); found {
		return table[i].value()
	}
	return 1
}

// Trust is the part of its weight for which the next delta of an author counts, where it has as much in
// common with others as its last ones; 1 in a run with Params.OwnText.
func (t *Tip) Trust(a Author) float64 { return trust(agreementOf(t.Records, a)) }

// trust is the part of its weight for which a delta counts.
func trust(agreement float64) float64 {
	return min(max((agreement-noAgreement)/(fullAgreement-noAgreement), 0), 1)
}

// agreeing compares the deltas of a fold, before they are weighed.
type agreeing struct {
	*folding
	scales  []float64   // 1 over the norm of each delta; 0 for one of no value
	voices  []float64   // how much each says about the others
	judges  []int       // the committee
	members int         // deltas that are no guest's
	squares []float64   // of the norms of each delta's sampled values, scaled
	apart   [][]float64 // squared distances, [delta][judge]

	judged         bool      // the round judged them
	trusts, claims []float64 // what weights are multiplied by, and how many times the median weight each may have

	cosines [][]float64 // [delta][judge]

	seats    []int       // of each delta in the committee, or -1; these are of asOne
	likeness [][]float64 // [delta][judge]
}

// agree notes in the next tip how the deltas of the set agree.
func (fold *folding) agree(next *Tip) *agreeing {
	a := &agreeing{folding: fold, trusts: make([]float64, len(fold.set)), claims: make([]float64, len(fold.set))}
	a.measureLengths()
	a.hear()
	agreement, judged := a.judge(next.Chain)
	a.judged = judged
	next.Records = slices.Clone(fold.prev.Records)
	for i, c := range fold.set {
		if judged && !c.Delta.Guest {
			next.Records = noteRecord(next.Records, c.Delta.Author, agreement[i], fold.round)
		}
		record := 1.0 // of a guest: its key is free, and so would a record be
		if !c.Delta.Guest {
			record = agreementOf(next.Records, c.Delta.Author)
		}
		if judged {
			record = min(record, agreement[i])
		}
		a.trusts[i], a.claims[i] = trust(record), math.MaxFloat64
		if a.silent[i] {
			a.trusts[i] = 0
		}
		if a.members >= MinVoices {
			a.claims[i] = max(1, float64(FreeClaim*float64(record*record)))
		}
	}
	next.Records = newestRecords(next.Records)
	return a
}

// measureLengths finds the norms of whole deltas from those of their tensors.
func (a *agreeing) measureLengths() {
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

// hear gives each delta as much of a voice as its author is trusted. Guests have none.
func (a *agreeing) hear() {
	a.voices = make([]float64, len(a.set))
	for i, c := range a.set {
		if c.Delta.Guest {
			continue
		}
		a.members++
		if a.scales[i] > 0 && !a.silent[i] {
			a.voices[i] = trust(agreementOf(a.prev.Records, c.Delta.Author))
		}
	}
}

// judge finds the agreement of each delta in units of the median, for rounds that say something.
func (a *agreeing) judge(chain Digest) (agreement []float64, judged bool) {
	a.choose()
	if a.members < MinVoices || len(a.judges) < leastCommittee {
		return nil, false
	}
	a.compare(chain)
	agreement = make([]float64, len(a.set))
	var heard, voices []float64
	for i, v := range a.voices {
		agreement[i] = a.inCommon(i)
		if v > 0 {
			heard, voices = append(heard, agreement[i]), append(voices, v)
		}
	}
	median := lowerMedian(heard, voices)
	if median < a.byChance() {
		return nil, false
	}
	for i := range agreement {
		agreement[i] = min(max(a.lifted(i, agreement[i]/median), -1), mostAgreement)
	}
	return agreement, true
}

// lifted makes up for a delta of few steps, which has more noise for its length: it may pass for one like
// the median, and for no better. Learners publish HMin steps at least, so fewer are not made up for.
func (a *agreeing) lifted(i int, agreement float64) float64 {
	steps := max(float64(a.set[i].Delta.Steps), float64(a.p.HMin))
	if agreement >= 1 || steps >= float64(a.p.H) {
		return agreement
	}
	return min(agreement*math.Sqrt(float64(a.p.H)/steps), 1)
}

// choose draws the committee from those that have a voice, by BLAKE3(round, all their authors, author). No
// delta that its author makes changes it; only to stay away does. Of a crowd that came by one invite as
// many keep a voice as it is meant for: keys are free to those who have an invite.
func (a *agreeing) choose() {
	seed := binary.LittleEndian.AppendUint32(nil, a.round)
	var order []int
	for i, c := range a.set {
		if a.voices[i] > 0 {
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
		if came[d.Invite]++; d.Places > 0 && came[d.Invite] > d.Places {
			a.voices[i] = 0
		} else if len(a.judges) < committee {
			a.judges = append(a.judges, i)
		}
	}
}

// pieces are the first values of the pieces that are compared, ascending: all of a small fragment, else
// those that BLAKE3(chain, 0), BLAKE3(chain, 1) and so on name, until there are enough.
func (a *agreeing) pieces(chain Digest) (starts []int) {
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
func (a *agreeing) compare(chain Digest) {
	starts := a.pieces(chain)
	memory := tensor.Borrow((len(a.judges)+1)*sampled, 0) // each judge's direction, and zeros
	defer memory.Return()
	n := 0
	for _, at := range starts {
		n += min(compareLen, a.f.Len-at)
	}
	direction := func(k int) []float64 { return memory.Wide[k*sampled : k*sampled+n] }
	zeros, values := direction(len(a.judges)), make([]float32, n)
	clear(zeros)
	a.squares, a.apart = make([]float64, len(a.set)), make([][]float64, len(a.set))
	// against reads the values of delta i and compares them with the first judges.
	against := func(i, judges int) {
		a.gather(i, starts, values)
		a.squares[i] = distance(a.scales[i], values, zeros)
		for k := range judges {
			a.apart[i][k] = distance(a.scales[i], values, direction(k))
		}
	}
	for i := range a.apart {
		a.apart[i] = make([]float64, len(a.judges))
	}
	for k, i := range a.judges {
		against(i, k)
		for other, j := range a.judges[:k] {
			a.apart[j][k] = a.apart[i][other]
		}
		clear(direction(k))
		tensor.AxpyWide(a.scales[i], values, direction(k))
	}
	for i, scale := range a.scales {
		if scale > 0 && !slices.Contains(a.judges, i) {
			against(i, len(a.judges))
		}
	}
	a.cosines = make([][]float64, len(a.set))
	for i := range a.cosines {
		a.cosines[i] = make([]float64, len(a.judges))
		for k := range a.judges {
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
func (a *agreeing) gather(i int, starts []int, values []float32) {
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

// inCommon is the lower median, by voices, of the cosines between delta i and the others of the
// committee, and of two the larger: one of these may lie.
func (a *agreeing) inCommon(i int) float64 {
	var cosines, voices []float64
	for k, j := range a.judges {
		if j != i {
			cosines, voices = append(cosines, a.cosines[i][k]), append(voices, a.voices[j])
		}
	}
	if len(cosines) == 2 {
		return max(cosines[0], cosines[1])
	}
	return lowerMedian(cosines, voices)
}

// cosine is that of delta i and of judge k: (|x|^2 + |y|^2 - |x - y|^2) / (2 |x| |y|).
func (a *agreeing) cosine(i, k int) float64 {
	x, y := a.squares[i], a.squares[a.judges[k]]
	if both := float64(x * y); both > 0 {
		return (x + y - a.apart[i][k]) / (2 * math.Sqrt(both))
	}
	return 0
}

// noteRecord brings an author's record a part of the way to what a round says.
func noteRecord(table []Record, author Author, agreement float64, round uint32) []Record {
	i, found := findRecord(table, author)
	if !found {
		table = slices.Insert(table, i, Record{Author: author, Agreement: RecordUnit})
	}
	r := &table[i]
	now := int(math.RoundToEven(agreement * RecordUnit))
	r.Agreement += int16((now - int(r.Agreement)) / recordShare)
	r.Round = round
	return table
}

// newestRecords leaves out the records over the limit, of the authors judged longest ago, of equals the
// last.
func newestRecords(table []Record) []Record {
	for len(table) > MaxRecords {
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

// trustedLately says whether an author whom records trust took part not long before a round.
func trustedLately(table []Record, round uint32) bool {
	return slices.ContainsFunc(table, func(r Record) bool {
		return round-r.Round < missedFor && trust(r.value()) > 0
	})
}

// bounded lowers weights to the claims, in units of the members' median weight for a step by trusts, and multiplies them by
// the trusts. Who is slow or fast is so by steps, which one round bounds (work). Where no member is trusted it does neither, unless somebody else was of late: then all are 0.
func (p Params) bounded(w []float64, set []Delta, trusts, claims []float64, lately bool) {
	words := slices.Clone(trusts)
	for i, d := range set {
		if d.Guest {
			words[i] = 0
		}
	}
	if !slices.ContainsFunc(words, func(t float64) bool { return t > 0 }) {
		if lately {
			clear(w)
		}
		return
	}
	steady := make([]float64, len(w)) // what a step weighs
	for i, d := range set {
		steady[i] = w[i] / p.work(d)
	}
	median := lowerMedian(steady, words)
	for i, d := range set {
		w[i] = float64(min(w[i], float64(claims[i]*median*p.work(d))) * trusts[i])
	}
}
