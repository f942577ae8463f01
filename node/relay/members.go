package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// files are what a relay remembers of a run that admits by invitation, "" each where it remembers nothing. It finds out who
// owns the run from genesis, so without that it could not tell the members by other owners after a restart.
type files struct{ genesis, members, revocations string }

// beAdmitted makes the relay a member like any other, of a run that admits by invitation. Until it has genesis it
// does not know who owns the run, and anybody's invite will do here.
func (s *server) beAdmitted(dir string, pass *member.Pass) error {
	if pass == nil {
		return nil
	}
	c, err := pass.Admit(s.run, s.key)
	if err != nil {
		return err
	}
	s.members = member.NewTable(s.run, nil)
	s.own.Certificate = c.Encode()
	if dir != "" {
		of := func(what string) string { return filepath.Join(dir, fmt.Sprintf("%s-%x", what, s.run[:8])) }
		s.files = files{of("genesis"), of("members"), of("revocations")}
	}
	_, err = s.members.Add(c)
	return err
}

// confirm takes from genesis who owns the run.
func (s *server) confirm(owners []wire.PeerID) error {
	if s.members == nil {
		return nil
	}
	if s.members.SetOwners(owners); len(s.members.Of(wire.PeerIDOf(s.key))) == 0 {
		return errors.New("none of the run's owners made it")
	}
	if s.host != nil {
		s.host.Reconsider(func(id wire.PeerID) bool { return !s.members.Member(id) })
	}
	return s.recallNames() // owners' words that came before it was known who they are
}

// recall makes those known again who were admitted before, as their invites may have expired, and those who were revoked.
func (s *server) recall() error {
	if s.files == (files{}) {
		return nil
	}
	doc, err := os.ReadFile(s.files.genesis)
	if err == nil && wire.CheckGenesis(s.run, doc) == nil { // a damaged one comes anew from a peer
		s.begin(doc)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.recallNames())
}

// recallNames is recall of who was admitted and revoked. What does not fit the run is nobody's.
func (s *server) recallNames() error {
	if s.files == (files{}) {
		return nil
	}
	return errors.Join(
		entries(s.files.members, member.Size, func(b []byte) {
			if c, err := member.Parse(b); err == nil {
				_, _ = s.members.Add(c)
			}
		}),
		entries(s.files.revocations, wire.MaxWord, func(b []byte) {
			if word, err := member.ParseKept(b); err == nil {
				_, _ = s.members.AddWords(word)
			}
		}))
}

// entries reads a file of entries of one size. What a crash left of one at its end is none.
func entries(file string, size int, f func(entry []byte)) error {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for ; len(b) >= size; b = b[size:] {
		f(b[:size])
	}
	return err
}

// remember adds an entry to a file, if there is one.
func (s *server) remember(file string, entry []byte) {
	if file == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := appendEntry(file, entry); err != nil {
		s.log.Error("remember who takes part", "err", err)
	}
}

// appendEntry puts an entry behind the others. What a crash or a full disk left of one at the end goes: no later one could
// be read behind it.
func appendEntry(file string, entry []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.WriteAt(entry, end-end%int64(len(entry)))
	}
	return errors.Join(err, f.Close())
}

// keepGenesis remembers the document.
func (s *server) keepGenesis(document []byte) {
	if s.files.genesis == "" {
		return
	}
	if err := os.WriteFile(s.files.genesis, document, 0o600); err != nil {
		s.log.Error("remember genesis", "err", err)
	}
}

// know makes a member known, and remembers it.
func (s *server) know(c member.Certificate) error {
	fresh, err := s.members.Add(c)
	if fresh {
		s.remember(s.files.members, c.Encode())
	}
	return err
}

// admits judges a peer, and knows it from then on.
func (s *server) admits(r hello.Record) error {
	if err := s.members.Admit(r, time.Now().UnixMilli()); err != nil || s.members == nil || r.Visits {
		return err
	}
	c, err := member.CertificateIn(r)
	if err == nil {
		err = s.know(c)
	}
	return err
}

// heard takes a message that was passed on. All that a relay makes of one is to heed an owner's word.
func (s *server) heard(e p2p.Message) {
	if m, err := wire.Decode(e.Data); err == nil && s.members != nil && m.Header != nil && m.Header.Header.Revocation() {
		_ = s.heed(member.Word{Statement: *m.Header, Reason: string(m.Inline)}) // of nobody who owns the run: anybody may have sent it
	}
}

// heed keeps owners' words that nodes count no more, and parts with these nodes: from then on nothing of them is passed on. Owners' words are
// few, so there is no bound on them, as at nodes. The error is for one that no owner signed.
func (s *server) heed(words ...member.Word) error {
	fresh, err := s.members.AddWords(words...)
	for _, w := range fresh {
		s.remember(s.files.revocations, w.Kept())
		if h := w.Statement.Header; !h.Keeps() {
			s.log.Info("an owner of the run revoked a node or an invite", "name", wire.PeerID(h.Certificate), "word", w.Text())
		}
	}
	if len(fresh) > 0 {
		s.host.Reconsider(func(id wire.PeerID) bool { return !s.members.Member(id) })
	}
	return err
}

// fetchWords asks a peer for the owners' words that it knows: those that were spread while the relay was away do not come again. Before
// genesis nobody is known to own the run.
func (s *server) fetchWords(ctx context.Context, from wire.PeerID) {
	if s.members == nil || s.document() == nil {
		return
	}
	body, err := s.ask(ctx, from, wire.Request{Kind: wire.GetPeerList})
	var list wire.PeerList
	if err == nil {
		list, err = wire.DecodePeerList(body)
	}
	var words []member.Word
	if err == nil {
		words, err = member.ParseWords(list.Words)
	}
	if err = errors.Join(err, s.heed(words...)); err != nil {
		s.log.Info("no owners' statements from this peer", "peer", from, "err", err)
	}
}
