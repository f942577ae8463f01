package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node"
	"atoll/node/files"
	"atoll/node/genesis"
	"atoll/node/limits"
	"atoll/node/status"
	"atoll/node/store"
)

const newHelp = `
Makes a folder with a genesis file, which describes a run: model, hyper-parameters, token budget, text, everything that its nodes must agree on. It never changes, and its hash is the RunID. The first machine joins in this folder and prints a link. All others join with the link.

    atoll new opticks
    atoll join opticks
    atoll join LINK          on every other machine, with the link that the first one shows

H, the steps between two deltas, decides how good the model becomes and how many bytes travel (optimizer/outer/DESIGN.md). --bandwidth chooses it to suit the links:

    atoll new --model small --bandwidth 20mbit --learners 8

Flags can come from a file, with atoll --config run.toml new:

    [new]
    name = "opticks"
    model = "small"
    tokens = 20e6

A model of other sizes is a JSON file: {"vocab":256,"hidden":192,"layers":6,"heads":6,"kvheads":2,"intermediate":512,"context":256}`

// NewCmd is `atoll new`.
type NewCmd struct {
	Dir  string `arg:"" optional:"" help:"Folder to make, for the genesis and the first node. Default: the name of the run."`
	Name string `help:"What people call the run. Default: the name of the folder, otherwise that of the model." placeholder:"TEXT"`
	runFlags
	Tokens           *amount       `help:"Budget: the run ends when this many tokens are folded into the model. Default: enough for --learners learners." placeholder:"N"`
	LearnersPerRound int           `help:"Learners that contribute to one round. If the run has more, they rotate, which costs quality: see optimizer/outer/DESIGN.md. What a node receives and folds grows with this number. Default: 16." placeholder:"N"`
	Bandwidth        limits.Rate   `help:"Rate of each node's link, each way, such as 20mbit. It chooses H, the fragments, the codec and, where links carry no more, --learners-per-round, and the command says what to expect." placeholder:"RATE"`
	Learners         int           `help:"Number of learners to plan for. It decides what --bandwidth chooses, the default of --tokens, the most steps of one delta and, if learners rotate, the outer learning rate. Default: 4." default:"4" placeholder:"N"`
	Step             time.Duration `help:"Time that a typical learner takes for one step, such as 500ms, for --bandwidth. With a model of 50M parameters or more, learners are then expected to train on accelerators, which leave processor cores free for outer steps. Default: measured on this machine." placeholder:"TIME"`
	UnionWindowSize  size          `help:"Disk space for the deltas of the union window, which every node keeps, even if --keep of atoll join is less. The union window is as many rounds, 32 to 256, as fit: two sides of a partition that close more are not reconciled, and the chain of one side wins." default:"20GB" placeholder:"SIZE"`
	Profile          string        `help:"Network between the nodes: ${enum}. Timeouts begin with what suits it, and follow what the nodes measure." enum:"local,lan,wan" default:"wan"`
	Data             string        `help:"Text of the run: a file, a folder, a corpus that atoll data build made, or goroot for the Go code that ships with Go. Nodes refuse to train on any other. Default: Newton's Opticks, which comes with atoll." placeholder:"PATH"`
	OwnData          bool          `help:"Let each learner train on a text of its own. --data is then this machine's text, and its hash is not recorded. If that is a corpus that atoll data build made, learners share only its tokenizer and its held-out shards."`
	From             string        `help:"Go on with the model in this folder instead of --model: config.json and safetensors of Hugging Face, or adapters of PEFT. Learners are then programs, see --learner of atoll join, and use AdamW." placeholder:"DIR"`
	Base             string        `help:"With --from and adapters: folder of the model that they belong to. Its digest goes into the recipe, and learners refuse another. Default: the folder that adapter_config.json names." placeholder:"DIR"`
	Context          int           `help:"With --from: tokens of a row. Default: 1024, or what the model takes." placeholder:"N"`
	Admission        string        `help:"Who may contribute: ${enum}. With invite, only nodes whose link has an invite: the first node prints such a link, and atoll invite makes more. Links of atoll invite --guests are for strangers. With open, any stranger can destroy the run." enum:"invite,open" default:"invite"`
	Uses             *uint32       `help:"With --admission invite: number of machines that the first node's link lets in, while the network is whole; 0 for any number. Default: --learners, at least 4." placeholder:"N"`
	Expires          *limits.Span  `help:"With --admission invite: how long new nodes may join with the first node's link, such as 12h or 7d. Default: 30d." placeholder:"TIME"`
	Owner            string        `help:"With --admission invite: file of the owner's key, which signs invites. Created if it is missing. Default: owner in the folder." placeholder:"FILE"`
	cli.JSONFlag

	note string // what reading the text did to files and left out
}

// Help implements kong.HelpProvider.
func (*NewCmd) Help() string { return newHelp }

func (c *NewCmd) Run(ctx context.Context, out *cli.Console) error {
	if err := c.check(); err != nil {
		return err
	}
	s, base, err := c.spec(time.Now())
	if err != nil {
		return err
	}
	out.Note(c.note)
	if c.Bandwidth != 0 {
		if s.Links, err = c.links(ctx, s); err != nil {
			return err
		}
	}
	g, e, err := s.Make()
	if err != nil {
		return c.explain(err)
	}
	a, err := c.write(g, s, e)
	if err != nil {
		return err
	}
	a.Base, a.BaseSHA256 = base.name, base.digest
	if c.JSON {
		return out.JSON(a)
	}
	return a.print(out)
}

// write makes the folder with the run. One that it made goes again where that fails.
func (c *NewCmd) write(g genesis.Genesis, s genesis.Spec, e genesis.Expected) (a created, err error) {
	dir := c.dir(g.Name)
	if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) {
		defer func() {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(dir))
			}
		}()
	}
	owner, key, err := c.admit(&g)
	if err != nil {
		return a, err
	}
	a = c.answer(g, s, e)
	if key != nil { // before the genesis: what stops here leaves no run
		v, err := c.invite(key, g)
		if err != nil {
			return a, err
		}
		a.Uses, a.Expires = v.Uses, v.ExpiresMs
	}
	if err := s.From.SaveBeside(dir); err != nil {
		return a, err
	}
	a.Genesis, a.Owner, a.Next = filepath.Join(dir, genesisName), owner, c.next(g)
	return a, writeNew(a.Genesis, g.Encode(), 0o644)
}

// explain names the flags of an error of the maker.
func (c *NewCmd) explain(err error) error {
	if links := (genesis.LinksError{}); errors.As(err, &links) {
		return cli.BadUsage("--bandwidth: %v", links)
	}
	return err
}

func (c *NewCmd) dir(name string) string { return cmp.Or(c.Dir, fileName(name)) }

// admit makes the folder, and in it the owner of a run that admits by invitation. It returns the file of the owner's key, and the key.
func (c *NewCmd) admit(g *genesis.Genesis) (owner string, key ed25519.PrivateKey, err error) {
	dir := c.dir(g.Name)
	if isFile(dir, genesisName) {
		return "", nil, fmt.Errorf("%s has a run already; choose another folder", dir)
	}
	if err = mayBeFolder(dir); err == nil {
		if err = os.MkdirAll(dir, 0o755); err != nil {
			err = fmt.Errorf("%w: choose another folder", err)
		}
	}
	if err != nil || c.Admission == genesis.Open {
		return "", nil, err
	}
	owner = cmp.Or(c.Owner, filepath.Join(dir, ownerName))
	key, err = store.ReadKeyFile(owner)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = store.MakeKeyFile(owner)
	}
	if err != nil {
		return "", nil, err
	}
	g.Owners = []wire.PeerID{wire.PeerIDOf(key)}
	return owner, key, nil
}

// invite writes the invite that the first node's link carries, and returns what it allows.
func (c *NewCmd) invite(owner ed25519.PrivateKey, g genesis.Genesis) (member.Invite, error) {
	uses, after := max(uint32(c.Learners), node.InviteUses), node.InviteAfter
	if c.Uses != nil {
		uses = *c.Uses
	}
	if c.Expires != nil {
		after = time.Duration(*c.Expires)
	}
	pass, err := node.NewInvite(owner, g.RunID(), uses, after)
	if err != nil {
		return member.Invite{}, err
	}
	return pass.Invite, writeNew(filepath.Join(c.dir(g.Name), node.InviteFile), []byte(pass.String()+"\n"), 0o600)
}

// next is what to type on the first machine.
func (c *NewCmd) next(g genesis.Genesis) string {
	line, text := "atoll join "+status.ShellWord(c.dir(g.Name)), c.Data
	if c.From != "" {
		learner := c.learner(g)
		line += " --init " + status.ShellWord(c.From) + " --learner " + status.ShellWord(learner)
		if strings.HasPrefix(learner, "hf") {
			text = cmp.Or(text, "TEXT")
		}
	}
	if c.Profile != p2p.WAN { // the default of join
		line += " --profile " + c.Profile
	}
	if text != "" {
		line += " --data " + status.ShellWord(text)
	}
	return line
}

// learner is a program that can train the run: the one for Hugging Face's models where the
// config names one, otherwise a script of the user. The node passes on the tokenizer that came with the model.
func (c *NewCmd) learner(g genesis.Genesis) string {
	line, known := "hf", `"model_type":`
	if genesis.Adapters(json.RawMessage(g.Recipe)) {
		line, known = "hf --base "+status.ShellWord(cmp.Or(c.Base, "DIR")), `"peft_type":"LORA"`
	}
	if !strings.Contains(g.Recipe, known) {
		return "python3 train.py"
	}
	ofBytes := strings.Contains(strings.ReplaceAll(g.Recipe, "}", ","), `"vocab_size":256,`)
	if !ofBytes && !genesis.HasTokenizer(g.Files) {
		line += " --tokenizer DIR"
	}
	return line
}

// fileName makes the name of a folder of a run's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(`/\:*?"<>|`, r) { // Windows has most of these
			return '-'
		}
		return r
	}, name)
}

// writeNew writes a file that must not exist yet.
func writeNew(path string, b []byte, mode fs.FileMode) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; choose another name", path)
	}
	return files.Write(path, b, mode)
}
