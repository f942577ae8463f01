// Package member says who may contribute to a run that admits by invitation.
//
// Such a run's genesis names the public keys of its owners. An owner signs an Invite, which
// is the public half of a key pair with limits. Whoever holds the secret half signs the key of a
// node with it: that makes a Certificate, from owner to invite to node, which everybody can check
// with genesis alone, while nobody else is online. Headers name the digest of their author's
// certificate, and capability records carry the certificate.
//
// An invite can be for guests, and may then be given to everybody: keys are free to whoever has it. What guests make counts
// a little beside the work of members, and their claims count for nothing.
//
// An owner revokes an admission with a revocation, which is a header like that of a delta: see wire.NewRevocation.
//
// A Table holds the certificates that a node knows. Everything else here is a pure function.
//
// Files, each may use those above it:
//
//	invite, certificate  what owners sign, and what follows for a node
//	revocation, table    who is in, and who was revoked and why
package member
