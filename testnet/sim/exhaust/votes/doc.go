// Package votes visits every interleaving of four voters of package finality at one height, one of whom lies.
//
// Three are real: a finality.Voter each, which takes real signed votes. The fourth has its key and no other
// rule. It proposes and votes for anything, in every view, and tells each of the others something else. Two values are on
// the chain of everybody, so honest voters can be brought to vote for either.
//
// These are enumerated. A voter's wait ends. It gets a proposal, with or without the prevotes that the
// proposal rests on. It gets the votes of two others. It is led into a later view. It restarts from what it saved. Votes that were
// sent reach a voter at any time later, in any order, or never.
//
// Bounds say how many views there are, and who proposes in them. Without them every order is followed. With Ordered it
// is one order of those that come to the same votes; a test compares the two. Together leaves histories out: no voter
// goes on in a phase before all have voted in the one before.
//
// A voter gets votes only where they make it do something. That leaves nothing out: a vote that came earlier and did
// nothing by itself can as well come with those that it takes effect with. Two states of a voter are one if all its
// fields are equal, times aside. A state of the world that was met before is not followed again.
//
// Or some honest voters went astray: they took tips of a chain that parted from the certified one before its newest
// certificate, and cannot tell. They have B and not A, the others A and not B.
//
// What must hold: of the votes that were ever sent no two certificates can be made that verify and have
// different values. What a voter certifies verifies. It is of the chain that the certificate before is of.
package votes
