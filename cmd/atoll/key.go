package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/store"
)

const keyHelp = `
A node's identity is an ed25519 key in its folder. Anyone who has it can sign in the node's name. Keep a backup private, and never run two nodes with one key.

    atoll key show --dir first
    atoll key export --dir first --out key.backup
    atoll key import key.backup --dir second`

// KeyCmd is `atoll key`.
type KeyCmd struct {
	Show   KeyShowCmd   `cmd:"" help:"Show the public id."`
	Export KeyExportCmd `cmd:"" help:"Print the secret key."`
	Import KeyImportCmd `cmd:"" help:"Give a new folder an exported key."`
}

// Help implements kong.HelpProvider.
func (*KeyCmd) Help() string { return keyHelp }

// keyIdentity is the answer of `atoll key show` and `import`.
type keyIdentity struct {
	ID     string `json:"id"`      // hex, as in status and ledger
	PeerID string `json:"peer_id"` // as in multiaddrs
	Dir    string `json:"dir"`
}

func identityOf(dir string, key ed25519.PrivateKey) keyIdentity {
	id := wire.PeerIDOf(key)
	return keyIdentity{ID: hex.EncodeToString(id[:]), PeerID: p2p.PeerText(id), Dir: dir}
}

func (k keyIdentity) print(out *console, asJSON bool) error {
	if asJSON {
		return out.json(k)
	}
	return table(out.out, []string{"id", k.ID}, []string{"peer id", k.PeerID}, []string{"folder", k.Dir})
}

// key is the secret key in the folder.
func (f dirFlag) key() (dir string, key ed25519.PrivateKey, err error) {
	if dir, err = f.folder(); err != nil {
		return "", nil, err
	}
	key, err = store.ReadKey(dir)
	return dir, key, err
}

const keyShowHelp = `
The public id names the node in status, ledger and addresses.

    atoll key show --dir first`

// KeyShowCmd is `atoll key show`.
type KeyShowCmd struct {
	dirFlag
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*KeyShowCmd) Help() string { return keyShowHelp }

// Run shows the public id.
func (c *KeyShowCmd) Run(out *console) error {
	dir, key, err := c.key()
	if err != nil {
		return err
	}
	return identityOf(dir, key).print(out, c.JSON)
}

const keyExportHelp = `
The secret key is one line of hex, for a backup or another machine. --out makes a new file that only its owner can read; a file that a shell makes with > is often readable by others.

    atoll key export --dir first --out key.backup
    atoll key export --dir first | ssh other atoll key import - --dir first`

// KeyExportCmd is `atoll key export`.
type KeyExportCmd struct {
	dirFlag
	Out string `help:"New file to write it to, with mode 0600. Default: stdout." placeholder:"FILE"`
}

// Help implements kong.HelpProvider.
func (*KeyExportCmd) Help() string { return keyExportHelp }

// Run prints the secret key or writes it to a file.
func (c *KeyExportCmd) Run(out *console) error {
	_, key, err := c.key()
	if err != nil {
		return err
	}
	text := hex.EncodeToString(key.Seed())
	if c.Out != "" {
		if err := writeNew(c.Out, []byte(text+"\n"), 0o600); err != nil {
			return err
		}
		out.say("%s holds the secret key of %v: keep it private", c.Out, wire.PeerIDOf(key))
		return nil
	}
	out.say("this is the secret key of %v: keep it private", wire.PeerIDOf(key))
	out.answer("%s", text)
	return nil
}

const keyImportHelp = `
A node that joins with this folder then has the exported identity.

    atoll key import key.backup --dir second
    atoll key export --dir first | ssh other atoll key import - --dir first`

// KeyImportCmd is `atoll key import`.
type KeyImportCmd struct {
	File string `arg:"" help:"File with an exported key; - reads stdin."`
	Dir  string `help:"Folder that gets the key; it must have none yet." required:"" placeholder:"DIR"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*KeyImportCmd) Help() string { return keyImportHelp }

// Run puts a key into a folder.
func (c *KeyImportCmd) Run(out *console) error {
	text, err := c.read(out.in)
	if err != nil {
		return err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return fmt.Errorf("%s holds no exported key: want %d hex digits, as `atoll key export` prints them", c.File, 2*ed25519.SeedSize)
	}
	key := ed25519.NewKeyFromSeed(seed)
	if err := store.ImportKey(c.Dir, key); err != nil {
		return err
	}
	return identityOf(c.Dir, key).print(out, c.JSON)
}

// maxKeyText bounds what is read as a key: it is 64 hex digits.
const maxKeyText = 1 << 10

func (c *KeyImportCmd) read(in io.Reader) (string, error) {
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return "", fmt.Errorf("import key: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxKeyText))
	if err != nil {
		return "", fmt.Errorf("import key: %w", err)
	}
	return string(b), nil
}
