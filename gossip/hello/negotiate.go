package hello

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Session is what two nodes agreed on; both sides compute the same.
type Session struct {
	Protocol uint32
	Minor    uint32 // the newest that both speak
	// Codecs that both decode, ascending, at least one. The run's genesis says
	// which one its deltas use.
	Codecs []uint8
	// BytesPerSecond is the slowest of the rates that the two measured for their
	// links; 0 if they measured none. It is a first guess for deadlines.
	BytesPerSecond float64
}

// Supports reports whether both nodes decode codec.
func (s Session) Supports(codec uint8) bool { return slices.Contains(s.Codecs, codec) }

// Fields of a record over which a session can fail; see Refusal.
const (
	FieldProtocol = "protocol"
	FieldRun      = "run"
	FieldAuthor   = "author"
	FieldCodecs   = "codecs"
)

// Refusal says over which field two nodes cannot work together.
type Refusal struct {
	Field, Ours, Theirs string
	// Ahead says over FieldProtocol whose program is the newer one: above 0 ours, below 0 the peer's.
	Ahead int
}

// Error names the field, both values and the remedy.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: we have %s, peer has %s: %s", r.Field, r.Ours, r.Theirs, r.remedy())
}

func (r *Refusal) remedy() string {
	switch r.Field {
	case FieldProtocol:
		if r.Ahead < 0 {
			return "this node is the older one: install the peer's version of atoll here"
		}
		return "the peer is the older one: install this version of atoll there"
	case FieldRun:
		return "the peer is in another run; join with that run's link, or give the address of a peer of this one"
	case FieldAuthor:
		return "both use one key; give each node its own --dir (a copied folder needs a new key)"
	case FieldCodecs:
		return "no codec in common; install one version of atoll on both"
	}
	return "the records do not fit together"
}

// Negotiate decides whether a, our record, and b, the peer's, make a session.
// It is pure and symmetric: Negotiate(b, a) gives the same session, or the
// same refusal with Ours and Theirs exchanged. The error is a *Refusal.
func Negotiate(a, b Record) (Session, error) {
	minor := min(a.Minor, b.Minor)
	if a.Protocol != b.Protocol || minor < max(a.LeastMinor, b.LeastMinor) {
		return Session{}, &Refusal{FieldProtocol, a.version(), b.version(), ahead(a, b)}
	}
	if a.Run != b.Run {
		return Session{}, &Refusal{FieldRun, a.Run.String(), b.Run.String(), 0}
	}
	if a.Author == b.Author {
		return Session{}, &Refusal{FieldAuthor, a.Author.String(), b.Author.String(), 0}
	}
	common := commonCodecs(a.Codecs, b.Codecs)
	if len(common) == 0 {
		return Session{}, &Refusal{FieldCodecs, fmt.Sprint(a.Codecs), fmt.Sprint(b.Codecs), 0}
	}
	return Session{Protocol: a.Protocol, Minor: minor, Codecs: common, BytesPerSecond: slowest(a, b)}, nil
}

// ahead is above 0 where a speaks a newer protocol than b, and below 0 where b does.
func ahead(a, b Record) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Minor, b.Minor))
}

// version is the protocol, such as 2, 2.1 or 2.1..2.3, with the program that speaks it, which is
// what has to be replaced.
func (r Record) version() string {
	v := strconv.FormatUint(uint64(r.Protocol), 10)
	switch {
	case r.LeastMinor != r.Minor:
		v = fmt.Sprintf("%s.%d..%s.%d", v, r.LeastMinor, v, r.Minor)
	case r.Minor != 0:
		v = fmt.Sprintf("%s.%d", v, r.Minor)
	}
	if r.Agent != "" {
		v += " (" + r.Agent + ")"
	}
	return v
}

func commonCodecs(a, b []uint8) []uint8 {
	var common []uint8
	for _, c := range a {
		if slices.Contains(b, c) {
			common = append(common, c)
		}
	}
	slices.Sort(common)
	return slices.Compact(common)
}

// slowest is the smallest of the four measured rates, 0 if none is.
func slowest(a, b Record) float64 {
	slow := 0.0
	for _, rate := range []float64{a.UpBytesPerSecond, a.DownBytesPerSecond, b.UpBytesPerSecond, b.DownBytesPerSecond} {
		if rate > 0 && (slow == 0 || rate < slow) {
			slow = rate
		}
	}
	return slow
}
