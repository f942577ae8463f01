package gossip

import "atoll/gossip/effect"

// Effect is one thing that the core asks its caller to do. Effects must be
// executed in the order in which Effects returns them. What each asks for stands in package effect.
type Effect = effect.Effect

// The effects.
type (
	IO                = effect.IO
	Publish           = effect.Publish
	Call              = effect.Call
	Hangup            = effect.Hangup
	Dial              = effect.Dial
	Discover          = effect.Discover
	Reserve           = effect.Reserve
	Release           = effect.Release
	Keep              = effect.Keep
	Drop              = effect.Drop
	EndVisit          = effect.EndVisit
	Admitted          = effect.Admitted
	Reconnect         = effect.Reconnect
	Reply             = effect.Reply
	ReplyPayload      = effect.ReplyPayload
	ReplyGenesis      = effect.ReplyGenesis
	ReplyManifest     = effect.ReplyManifest
	ReplyChunk        = effect.ReplyChunk
	ReplyPart         = effect.ReplyPart
	Offer             = effect.Offer
	Fetched           = effect.Fetched
	CatchUp           = effect.CatchUp
	LeaveOut          = effect.LeaveOut
	BaseMismatch      = effect.BaseMismatch
	StateDiffers      = effect.StateDiffers
	Audit             = effect.Audit
	Fetching          = effect.Fetching
	StoreChunk        = effect.StoreChunk
	StorePart         = effect.StorePart
	StoreHeader       = effect.StoreHeader
	Snapshot          = effect.Snapshot
	OwnHeader         = effect.OwnHeader
	OwnKnown          = effect.OwnKnown
	EquivocationFound = effect.EquivocationFound
	Revoked           = effect.Revoked
	Misbehaved        = effect.Misbehaved
	Event             = effect.Event
)

// EventKind classes an Event.
type EventKind = effect.EventKind

// The kinds of events.
const (
	EventJoined       = effect.EventJoined
	EventLeft         = effect.EventLeft
	EventSilent       = effect.EventSilent
	EventHeard        = effect.EventHeard
	EventRepair       = effect.EventRepair
	EventFork         = effect.EventFork
	EventGaveUp       = effect.EventGaveUp
	EventSnapshot     = effect.EventSnapshot
	EventMisbehaved   = effect.EventMisbehaved
	EventEquivocation = effect.EventEquivocation
	EventJoin         = effect.EventJoin
	EventAudit        = effect.EventAudit
)
