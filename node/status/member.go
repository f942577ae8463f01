package status

// Revocation is an owner's signed statement that a name counts no more, for each fragment.
type Revocation struct {
	Words  [][]byte `json:"words"` // signed headers
	Reason string   `json:"reason"`
}

// Member is a node that was admitted to a run which admits by invitation. A node that was invited
// twice is there twice.
type Member struct {
	ID        string `json:"id"`
	Invite    string `json:"invite"`          // public half of the invite that admitted it, hex; its own id where the invite is for it alone
	Guest     bool   `json:"guest,omitempty"` // the node came by invites for guests alone
	Uses      uint32 `json:"uses,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"`
	Revoked   bool   `json:"revoked,omitempty"` // an owner of the run revoked it, or its invite
	Ended     bool   `json:"ended,omitempty"`   // its invite is revoked; the node may stay
}
