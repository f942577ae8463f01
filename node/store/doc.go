// Package store keeps what a node must find again after a restart, under one
// folder. It knows ids, headers and bytes; what the bytes mean is not its
// business.
//
//	key           ed25519 seed in hex, mode 0600
//	genesis       the run's immutable document
//	text          path of the text that the node trains on
//	settings.toml what its owner has set for this machine
//	index.db      bbolt: which deltas, rounds, bases, marks, equivocation proof there are
//	segments/F/N  headers and records of old rounds: fragment, number
//	deltas/F/B/ID the payload of a delta: fragment, block of 64 rounds
//	bases/F-R-D   an encoded tip: fragment, round, start of its digest
//	chunks/D      chunks of a snapshot that is being fetched
//	checkpoint    inner optimizer state
//	steps.log     one fixed-size record per inner step
//	tmp/          files being written; emptied by Open
//	aside-TIME/   a damaged index and what belonged to it; for people to remove
//
// Files, each may use those above it:
//
//	errors                errors that callers decide on
//	trouble, trouble_unix, trouble_windows  what is wrong with a disk
//	disk                  the file system, as a store uses it
//	store, commit, files  the store, its commits, and its files
//	steplog               inner steps that were taken
//	identity              the key and the genesis
//	remembered            what the next start finds, in files
//	entries               entries with checksums
//	index                 ranges of the index
//	check                 look for damage
//	meta                  small values
//	scratch               files for this process alone
//	members               certificates and revocations
//	equivocation          proofs
//	held                  what payloads take
//	segment, rounds       rounds, and files of old ones
//	authors               what was folded of each author
//	segments, seal        move old rounds into files, and find them there
//	bases                 encoded tips
//	deltas                headers and payloads
//	payloads              files of payloads
//	retain                drop what is not needed
//	own                   own deltas and marks
//	checkpoint            the state of the inner optimizer
//	snapshot              chunks that are being fetched
//	install               go on from a snapshot
//	lend                  let another process read
//
// # Old rounds
//
// Headers and records of rounds that are final go into segment files (Seal), 128 rounds of
// a fragment in each, some 145 bytes a delta. A segment file does not change. It is synced before the
// commit that names it, gives its digest, and takes the same headers and records out of the
// index; what no commit names is removed by Open. So the index stays at some hundred rounds of each
// fragment. Opening a folder and reading its last rounds reads no segment. Whoever reads
// older ones opens theirs and checks them against the digest. A damaged one is ErrCorrupt, and
// SetSegmentsAside goes on without it.
//
// All is found as if it were in the index. What is in the index goes before what is in a segment: a
// round may be recorded again. Records that are truncated
// (TruncateRounds, Install) end the segment's validity there.
//
// What payloads take is added up by round as they come and go, and what authors contributed
// when rounds are sealed. So neither retention nor a start reads all headers.
//
// # Durability
//
// Files are written under tmp/ and renamed, so a reader sees all of one or
// none. The index is written in one open transaction. It is committed when it
// is large, when something must be durable, and by Flush and Close. After a
// crash the index is a prefix of what was put into it, in order. A file is in
// place before the index names it and goes only after the index has forgotten
// it; Open removes what a crash left between.
//
//	call                         survives kill -9      survives power loss
//	LoadKey, SaveGenesis         when it returns       when it returns
//	PutOwn, RaiseMark            when it returns       when it returns, with all that was put before
//	Install, Seal                when it returns       when it returns, with all that was put before
//	Flush, Close                 all that was put      all of the index; files as below
//	PutCheckpoint                when it returns       when it returns
//	PutDelta, PutBase            after a commit        after a commit, but the file may be found damaged
//	PutHeader, PutRound, Put...  after a commit        after a commit
//	PutChunk                     when it returns       perhaps; verified when read
//	StepLog.Append               when it returns       perhaps; damaged records are skipped
//
// # Disks that fail
//
// A call that fails changes nothing, and can be made again when the disk is
// well. A commit that fails loses nothing either. What was pending stays
// readable and waits for the next commit, up to a bound (ErrWaiting). Only
// PutOwn, RaiseMark and Install, which promise a commit, fail with it and take
// their change back. TroubleOf tells a full disk from a broken one. An index
// that cannot be used ends the store (ErrIndex); SetAside makes room for a new
// one.
//
// Everything whose loss would break a promise to others, the own deltas and the
// marks that forbid signing a round twice, is synced. The rest can be had from
// peers again, and reading verifies it against its hash.
package store
