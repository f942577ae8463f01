package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer/tune"
)

const newHelp = `
A genesis file describes a run: model, hyper-parameters, token budget, text, everything that its nodes must agree on. It never changes, and its hash is the RunID. The first machine joins with the file and prints a link. All others join with the link.

    atoll new --name opticks --out opticks.genesis
    atoll join --genesis opticks.genesis --dir first
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
	Name string `help:"What people call the run. Default: the model's name." placeholder:"TEXT"`
	runFlags
	Tokens    *amount       `help:"Budget: the run ends when so many tokens are folded into the model. Default: the fewest with which a run of --learners is not short." placeholder:"N"`
	Answerers int           `help:"Learners that contribute to one round. If the run has more, they rotate, which costs quality: see optimizer/outer/DESIGN.md. What a node receives and folds grows with this number. Default: 16." placeholder:"N"`
	Bandwidth rate          `help:"What each node's link carries each way, such as 20mbit. Chooses H, the fragments, the codec and, where links carry no more, --answerers, and says what to expect." placeholder:"RATE"`
	Learners  int           `help:"Learners that the run expects. --bandwidth, the default of --tokens, the steps that one delta may have and, where learners take turns, the outer rate follow from it. Default: 4." default:"4" placeholder:"N"`
	Step      time.Duration `help:"Time of one step of a usual learner, for --bandwidth. Of a model of 50M parameters and more that somebody knows it for, cores are taken to be free beside what trains. Default: measured on this machine." placeholder:"500ms"`
	Window    size          `help:"Bytes of deltas that every node keeps so that chains can be united, however little --keep of atoll join says. The rounds within which two sides of a partition are merged follow from it: 32 to 256." default:"20GB" placeholder:"SIZE"`
	Profile   string        `help:"Network between the nodes: ${enum}. Times begin with what suits it, and follow what the nodes measure." enum:"local,lan,wan" default:"wan"`
	Data      string        `help:"Text of the run: a file, a folder, a corpus that atoll data build made, or goroot for the Go code that ships with Go. Nodes refuse to train on any other. Default: Newton's Opticks, which comes with atoll." placeholder:"PATH"`
	OwnData   bool          `help:"Let each learner train on a text of its own. --data is then this machine's text, and its hash is not recorded. Of a corpus that atoll data build made only the tokenizer and the held-out shards are then common to all, and nobody is given the others."`
	From      string        `help:"Go on with the model in this folder instead of --model: config.json and safetensors of Hugging Face, or adapters of PEFT. Learners are programs then, see --learner of atoll join, and use AdamW." placeholder:"DIR"`
	Base      string        `help:"With --from and adapters: folder of the model that they belong to. Its digest goes into the recipe, and learners refuse another. Default: the folder that adapter_config.json names." placeholder:"DIR"`
	Context   int           `help:"With --from: tokens of a row. Default: 1024, or what the model takes." placeholder:"N"`
	Admission string        `help:"Who may contribute: ${enum}. With invite only nodes that come by a link with an invite, as the first node prints it and atoll invite makes more; atoll invite --guests makes a link by which strangers can help. With open any stranger can destroy the run." enum:"invite,open" default:"invite"`
	Owner     string        `help:"With --admission invite: file of the owner's key, which signs invites. Made if it is not there. Default: the name of the genesis file with .owner." placeholder:"FILE"`
	Out       string        `help:"File to write the genesis to. Default: NAME.genesis." placeholder:"FILE"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*NewCmd) Help() string { return newHelp }

// Run makes the genesis and writes it.
func (c *NewCmd) Run(ctx context.Context, out *console) error {
	if c.From != "" {
		return c.runFrom(ctx, out)
	}
	if c.Base != "" {
		return badUsage("--base is the model of adapters: name their folder by --from")
	}
	g, train, err := c.genesis(time.Now())
	if err != nil {
		return err
	}
	e, err := c.chooseLinks(ctx, &g)
	if err != nil {
		return err
	}
	c.fit(&g, e)
	run := runOf(g, c.Learners, train, e != nil)
	if c.Tokens == nil {
		run.Budget = run.Enough()
		g.Outer.Budget = run.Budget
	}
	owner, err := c.admit(&g)
	if err != nil {
		return err
	}
	path, err := c.write(g)
	if err != nil {
		return err
	}
	id := g.RunID()
	answer := created{
		Owner: owner,

		Run: hex.EncodeToString(id[:]), Name: g.Name, Genesis: path, Params: g.Model.Params(), Fragments: g.Outer.Fragments,
		Optimizer: g.Inner.OptimizerName(), LR: g.Inner.LR, H: g.Outer.H, Codec: g.Outer.Codec.String(), Merge: g.Outer.Merge,
		Expected: e, Sizes: c.sizesOf(g), Budget: g.Outer.Budget, Length: tune.LengthOf(run), Data: g.Data.Name, SHA256: g.Data.SHA256,
		Next: fmt.Sprintf("atoll join --genesis %s --dir %s%s", status.ShellWord(path), status.ShellWord(defaultDir(id)), c.joinFlags()),
	}
	if c.JSON {
		return out.json(answer)
	}
	return answer.print(out)
}

// write checks a genesis and writes it to a file that must not exist yet.
func (c *NewCmd) write(g genesis.Genesis) (path string, err error) {
	if err := g.Validate(); err != nil {
		return "", err
	}
	path = c.out(g)
	return path, writeNew(path, g.Encode(), 0o644)
}

// out is the file that the genesis goes to.
func (c *NewCmd) out(g genesis.Genesis) string {
	return cmp.Or(c.Out, fileName(g.Name)+genesisSuffix)
}

// admit says who may contribute to the run, and makes the key of its owner if there is none. It returns
// the file of that key.
func (c *NewCmd) admit(g *genesis.Genesis) (owner string, err error) {
	if g.Admission = c.Admission; c.Admission == genesis.Open {
		if c.Owner != "" {
			return "", badUsage("--owner is for runs with --admission invite: an open run has no owner")
		}
		return "", nil
	}
	if _, err := os.Stat(c.out(*g)); err == nil {
		return "", fmt.Errorf("%s exists already; choose another name", c.out(*g))
	}
	owner = cmp.Or(c.Owner, ownerFile(c.out(*g)))
	key, err := store.ReadKeyFile(owner)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = store.MakeKeyFile(owner)
	}
	if err != nil {
		return "", err
	}
	g.Owners, g.Outer.Revocations, g.Guests = append(g.Owners, wire.PeerIDOf(key)), true, true
	return owner, nil
}

// The file of the owner's key lies beside the genesis, unless the user says another.
const (
	genesisSuffix = ".genesis"
	ownerSuffix   = ".owner"
)

func ownerFile(genesis string) string {
	return strings.TrimSuffix(genesis, genesisSuffix) + ownerSuffix
}

// joinFlags are the flags that the first node should have to match the run.
func (c *NewCmd) joinFlags() string {
	flags := " --profile " + c.Profile
	if c.Data != "" {
		flags += " --data " + status.ShellWord(c.Data)
	}
	return flags
}

// fileName makes a file name of a run's name.
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; choose another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
