package replica

// Policy is what replicas may decide differently without coming to other bits.
type Policy struct {
	// Bases of rounds that are BaseAt more than a multiple of BaseEvery go to disk, so
	// that a restart folds at most that many rounds again.
	BaseEvery, BaseAt uint32
	// Kept bases are not held against their checksums before each fold.
	TrustMemory bool
	// Rounds of a fragment that wait for a disk that takes no record; 0 = any
	// number. Those beyond it have none any more.
	MaxUnrecorded int
	// Bytes that the ledger may take before payloads that nobody can ask for any
	// more are dropped; 0 = they stay.
	KeepBytes int64
	// Milliseconds that chunks of a snapshot stay after the last one came: a node that
	// has to take a newer one soon finds most of them again.
	ChunksStayMs int64

	// Milliseconds after which a leaver goes though peers have not taken all that it
	// made: it is in the ledger, and goes out after the next start. 0 = it waits.
	LeaveWithinMs int64

	Source SourcePolicy
}

// SourcePolicy says how snapshots are given away.
type SourcePolicy struct {
	// A manifest of the source's own choice serves all askers for so many milliseconds,
	// and for so many rounds that close meanwhile: the joiner has to fetch these too.
	FreshMs     int64
	FreshRounds uint32
	// How often a source chooses what it gives. Rounds close and are folded again between
	// its choice and the reading of a base, which may be gone then; for the asker a pause
	// is a long time.
	Tries int
	// A source that folded for others folds nothing for them for this many times as long:
	// anybody may ask for it. Other sources may have a base of those rounds.
	Pause int64
	// Once there are more chunks than so many whole manifests have, chunks that
	// nobody asked for lately go first. So a slow joiner can finish, and memory is
	// bounded.
	Sets int
	// A fragment's tip of more bytes is given from Scratch, not from memory.
	InMemory int
}

// largeTip is the tip of a fragment, in bytes, from which a copy for joiners goes to the disk: those of 24 fragments would
// take 100 MB of memory. Smaller ones are read sooner from there.
const largeTip = 4 << 20

// NodePolicy is the policy of a real process.
func NodePolicy() Policy {
	return Policy{
		BaseEvery: 4, MaxUnrecorded: maxUnrecorded, ChunksStayMs: 60_000,
		Source: SourcePolicy{FreshMs: 15_000, FreshRounds: 4, Tries: 4, Pause: 4, Sets: 2, InMemory: largeTip},
	}
}
