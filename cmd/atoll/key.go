package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/node/store"
)

const keyHelp = `
A node's identity is an ed25519 key in its folder. The public id names the node in status, ledger and addresses. Anyone who has the key can sign in the node's name: keep a backup private, and never run two nodes with one key.

    atoll key first
    atoll key first --export key.backup
    atoll key second --import key.backup
    atoll key first --export - | ssh other atoll key first --import -

--export writes the secret key as one line of hex, to a new file that only its owner can read, or to stdout for -. A file that a shell makes with > is often readable by others. --import gives it to a folder that has no key yet. A node that joins with this folder then has the exported identity.`

// KeyCmd is `atoll key`.
type KeyCmd struct {
	dirArg
	Export string `help:"Write the secret key to this new file; - is stdout." placeholder:"FILE" xor:"what"`
	Import string `help:"Give the folder the exported key in this file; - is stdin." placeholder:"FILE" xor:"what"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*KeyCmd) Help() string { return keyHelp }

// keyIdentity is the answer of `atoll key`.
type keyIdentity struct {
	ID     string `json:"id"`      // hex, as in status and ledger
	PeerID string `json:"peer_id"` // as in multiaddrs
	Dir    string `json:"dir"`
}

// Run shows the public id, after an import too, or exports the secret key.
func (c *KeyCmd) Run(out *cli.Console) error {
	if c.Import != "" {
		if err := c.put(out.In); err != nil {
			return err
		}
	}
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	key, err := store.ReadKey(dir)
	if err != nil {
		return err
	}
	if c.Export != "" {
		return c.export(out, key)
	}
	id := wire.PeerIDOf(key)
	k := keyIdentity{ID: hex.EncodeToString(id[:]), PeerID: address.PeerText(id), Dir: dir}
	if c.JSON {
		return out.JSON(k)
	}
	return cli.Table(out.Out, []string{"id", k.ID}, []string{"peer id", k.PeerID}, []string{"folder", k.Dir})
}

// export prints the secret key or writes it to a file.
func (c *KeyCmd) export(out *cli.Console, key ed25519.PrivateKey) error {
	text := hex.EncodeToString(key.Seed())
	if c.Export == "-" {
		out.Say("this is the secret key of %v: keep it private", wire.PeerIDOf(key))
		out.Answer("%s", text)
		return nil
	}
	if err := writeNew(c.Export, []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	out.Say("%s holds the secret key of %v: keep it private", c.Export, wire.PeerIDOf(key))
	return nil
}

// put reads a key into the folder.
func (c *KeyCmd) put(in io.Reader) error {
	if c.Dir == "" {
		return cli.BadUsage("--import needs the folder that gets the key: type `atoll key DIR --import %s`", status.ShellWord(c.Import))
	}
	text, err := c.read(in)
	if err != nil {
		return err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return fmt.Errorf("%s holds no exported key: want %d hex digits, as `atoll key --export` writes them", c.Import, 2*ed25519.SeedSize)
	}
	return store.ImportKey(c.Dir, ed25519.NewKeyFromSeed(seed))
}

// maxKeyText bounds what is read as a key: it is 64 hex digits.
const maxKeyText = 1 << 10

func (c *KeyCmd) read(in io.Reader) (string, error) {
	if c.Import != "-" {
		f, err := os.Open(c.Import)
		if err != nil {
			return "", fmt.Errorf("import key: %w: pass what `atoll key --export` wrote", err)
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
