package wire

import "crypto/ed25519"

// Version is the first byte of every gossip message and request. It changes
// when the meaning of any byte after it does. A new kind of request or a new key
// of a heartbeat changes nothing: who does not know it refuses the one and skips the other.
const Version = 2

// Limits on gossip messages.
const (
	// MaxMessage bounds a gossip message. gossipsub repeats each message to
	// several peers, so only small ones may travel by it. 4 KiB holds a heartbeat of
	// MaxFragments fragments with every number at its largest.
	MaxMessage = 4 << 10
	// MaxInline bounds a payload carried inside its header's message. Such a
	// payload arrives several times; up to 1 KiB that costs less than a stream.
	MaxInline = 1 << 10
	// MaxFragments bounds the fragments of a model. It follows from MaxMessage:
	// a heartbeat has up to 14 bytes for each.
	MaxFragments = 256
	// MaxLag bounds Heartbeat.Lag: digests older than that say nothing about now.
	MaxLag = 64
	// MinPeriodMs bounds Heartbeat.PeriodMs from below: more than fifty heartbeats a second say
	// nothing new, and MaxPeriodMs from above: a peer that names it counts as silent
	// after ten minutes, and no claim keeps it alive for longer.
	MinPeriodMs = 20
	MaxPeriodMs = 60_000
	// MaxUpload bounds Heartbeat.Upload, in bytes per second: above any link, and small
	// enough that sums and products of rates stay finite.
	MaxUpload = 1e15
	// MaxPlan bounds Heartbeat.Plan: the most steps that any run lets a delta claim.
	MaxPlan = 1 << 20
)

// Limits on requests.
const (
	// MaxRequest bounds a request: MaxRanges ranges of up to 14 bytes fit four
	// times over.
	MaxRequest = 64 << 10
	// MaxWaitMs bounds how long a server parks a request for a payload that it
	// is fetching itself: longer, and the caller is better off asking another.
	MaxWaitMs = 60_000
	// MaxRanges bounds the ranges in one request: four for each fragment, so
	// that all fragments can be bisected with one request a step.
	MaxRanges = 4 * MaxFragments
	// MaxRangeRounds bounds the rounds of one range: 16 union windows (W_u).
	MaxRangeRounds = 4096
	// MaxRangesRounds bounds the rounds of all ranges of a request together: 64
	// rounds for each of MaxFragments fragments in an answer below 1 MiB.
	MaxRangesRounds = 16384
	// MaxRoundKeys bounds the rounds whose headers one request may ask for.
	MaxRoundKeys = 1024
	// MaxHoldings bounds the blobs that one request asks about: the held-out shards of a
	// corpus and two windows of a learner, several times over.
	MaxHoldings = 256
)

// Limits on answers. Each is what the asker reads at most, body only.
const (
	// MaxGenesis bounds the genesis document: a few KiB in practice, with room
	// for the tokenizer that it holds.
	MaxGenesis = 1 << 20
	// MaxRecord bounds a signed capability record: 16 addresses and some devices.
	MaxRecord = 4 << 10
	// MaxPeerList bounds the capability records in one peer list; a node tells about
	// those it heard last, and the rest are found through them.
	MaxPeerList = 256
	// MaxWords bounds the owners' words in one: as many names as the tip of a fragment has.
	MaxWords = 1024
	// MaxWord bounds one.
	MaxWord = SignedHeaderSize + MaxReason
	// MaxAuthors bounds the certificates that one request asks for, and the authors: who is new
	// to a node comes a few at a time, or with a repair.
	MaxAuthors = 64
	// MaxCertificates bounds the certificates in an answer: as many as can be asked for.
	MaxCertificates = 2 * MaxAuthors
	// MaxCertificate bounds one.
	MaxCertificate = 256
	// MaxHeaders bounds the signed headers in one answer: four for each of
	// MaxRoundKeys rounds. A server stops before the round that would pass it.
	MaxHeaders = 4096
	// MaxPayload bounds a payload: a fragment of nearly 16 Mi values in f32, or
	// 128 Mi in int4. It is held in memory while it is checked. A larger model
	// takes more fragments.
	MaxPayload = 64 << 20
	// ChunkSize is the size of each chunk of a tip but the last: small enough to
	// spread over many snapshot sources, large enough that its digest is cheap.
	ChunkSize = 256 << 10
	// MaxChunks bounds the chunks of one tip: 1 GiB, global parameters and momentum of the
	// 128 Mi values of the largest payload.
	MaxChunks = 4096
	// MaxManifest bounds a signed manifest: some 123,000 chunks, 30 GiB of tips, which are global
	// parameters and momentum of four billion values. A run's own bound is ManifestSize.
	MaxManifest = 4 << 20
	// PartSize is the size of each part of a blob but the last, as that of a chunk.
	PartSize = ChunkSize
	// MaxParts bounds the parts of a blob: 64 MiB, which is room for the largest tokenizers.
	MaxParts = 256
	// MaxBlob bounds a blob in bytes.
	MaxBlob = MaxParts * PartSize

	maxPeerListBody = 1 + 2*arrayHead + MaxPeerList*(arrayHead+MaxRecord) + MaxWords*(arrayHead+MaxWord)
	maxRoundsBody   = arrayHead + MaxRanges*rangeAnswerHead + MaxRangesRounds*digestItem
	maxHeadersBody  = MaxHeaders * SignedHeaderSize

	maxCertificatesBody = arrayHead + MaxCertificates*(arrayHead+MaxCertificate)

	maxHoldingsBody = arrayHead + MaxHoldings*(2+MaxParts/8)
	maxPartBody     = partIndex + treeHead + treeNode*(MaxParts-1) + PartSize

	maxChunkBody = ChunkSize + 4 // a byte more for each of the four streams that stays as it is
)

// Lengths of CBOR items at their longest.
const (
	arrayHead       = 3      // head of an array or string of up to 64 Ki elements
	numberItem      = 5      // uint32
	digestItem      = 2 + 32 // byte string of a digest
	rangeAnswerHead = 1 + 2*numberItem + 2*digestItem + arrayHead
	sizeItem        = 9                                                      // uint64
	fragmentHead    = 1 + 2*numberItem + 2*digestItem + sizeItem + arrayHead // of a manifest, without its chunks
	manifestHead    = 1 + digestItem + arrayHead + ed25519.SignatureSize
)
