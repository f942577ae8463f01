package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/settings"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
)

const joinHelp = `
Joins a run with the link that another node prints, begins one in the folder that atoll new made, or goes on with the run of a folder. An argument that begins with atoll: is a link, any other is a folder. The node trains until the run's budget is used up. Ctrl-C leaves in order: what is not published yet is published first. A second Ctrl-C ends at once.

    atoll join first                                        the first node of a run, after atoll new first
    atoll join LINK
    atoll join atoll:RUN                                    a run's 64 digits: with a member that is on this network
    atoll join OLDLINK NEWLINK                              the invite of the one, the addresses of both
    atoll join LINK second --threads 2 --batch 8
    atoll join second                                       go on after a stop
    atoll join                                              the same with the only folder here
    atoll join LINK --observe                               hold and serve, do not train
    atoll join LINK --learner torch                         train with PyTorch on this machine's accelerator
    atoll join LINK --learner "torchrun:8 --fsdp"           with eight of them as one learner, torch or hf
    atoll join LINK mine --learner attach                   wait for a script that calls atoll.join(model, folder="mine")
    atoll join LINK --up 5mbit --down 20mbit --quota 300GB/month --hours 22-07 --battery pause

Settings that are typed stay with the folder: after a reboot a bare atoll join keeps to the same limits. atoll set shows and changes them.

The only line on stdout is the join link for others; progress goes to stderr.`

// JoinCmd is `atoll join`.
type JoinCmd struct {
	Link string `arg:"" optional:"" env:"ATOLL_JOIN_LINK" help:"Join link of the run, or atoll: and its 64 digits where a member is on this network. Other users of this machine see it in the list of processes; they do not see the variable ${env}."`
	Dir  string `arg:"" optional:"" help:"The node's folder: key, ledger, checkpoints. Default: ./atoll-RUN with a link, and without one the only folder here."`
	Also string `arg:"" optional:"" help:"Another link of the run: one that says where a member is now leads in together with one that has an invite."`

	Genesis   string   `help:"Genesis file, for the first node of a run whose folder is not the one that atoll new made." placeholder:"FILE"`
	Owner     string   `help:"File of the owner's key that atoll new wrote, for the first node of a run that admits by invitation. Default: owner in the folder, or beside --genesis." placeholder:"FILE"`
	Listen    []string `help:"Addresses to listen on, such as /ip4/0.0.0.0/tcp/4001. Default: port 27182. Any free one if that is taken, or if --profile is not wan." placeholder:"MULTIADDR"`
	Peer      []string `help:"More addresses to dial, each ending in /p2p/ID." placeholder:"MULTIADDR"`
	Data      string   `help:"Text of the run: a file, a folder, or goroot for the Go code that ships with Go. If the run trains on a corpus that atoll data build made, a folder with some of its shards; peers give the others. Default: what the node of this folder trained on before, otherwise what peers give, or Newton's Opticks, which comes with atoll." placeholder:"PATH"`
	Init      string   `help:"File or folder of the model that the run goes on with, for its first node. All others fetch it from peers." placeholder:"PATH"`
	Learner   string   `help:"Program that trains instead of atoll's own trainer: torch (PyTorch on this machine's accelerator), hf (models of Hugging Face), or any command that speaks optimizer/trainer/external/PROTOCOL.md. torchrun:N before torch or hf starts N processes that are one learner. With attach the node waits for a training script that runs already. The script finds the node by its folder. Default: what the node of this folder trained with before, otherwise builtin." placeholder:"CMD"`
	LogLevel  string   `help:"What to log on stderr: ${enum}." enum:"debug,info,warn,error" default:"warn"`
	JSON      bool     `name:"json" help:"Print the status as one line of JSON every few seconds."`
	nodeFlags `group:"Settings, which stay with the folder until atoll set changes them:"`

	parsed *kong.Context // what was typed; nil where nothing stays, as with nodes of a testnet
}

// Help implements kong.HelpProvider.
func (*JoinCmd) Help() string { return joinHelp }

// Run takes part in the run. What was typed is kept before the node costs anything: a start may be killed while it still fetches.
func (c *JoinCmd) Run(ctx context.Context, out *cli.Console, parsed *kong.Context) error {
	c.parsed = parsed
	var last status.Snapshot
	err := c.takePart(ctx, out, func(ctx context.Context, cfg node.Config) (status.Snapshot, error) {
		_, missing := os.Stat(cfg.Dir)
		if err := c.keep(ctx, cfg.Dir); err != nil {
			return status.Snapshot{}, err
		}
		var err error
		last, err = node.Run(ctx, cfg)
		if errors.Is(missing, fs.ErrNotExist) && !isFile(cfg.Dir, genesisName) { // it never got in: a key that nobody knows, and what was typed
			err = errors.Join(err, os.RemoveAll(cfg.Dir))
		}
		return last, err
	})
	if err == nil && (last.Finished && last.Worse() != "" || last.Lost() != "") {
		return errSilent
	}
	return err
}

// keep keeps what was typed, unless a node runs on the folder: this one will not.
func (c *JoinCmd) keep(ctx context.Context, dir string) error {
	f, err := settings.Open(ctx, dir, c.parsed)
	if err != nil {
		return err
	}
	if f.Runs() {
		word := status.ShellWord(dir)
		return fmt.Errorf("%s is in use: a node runs there already; change its settings with `atoll set %s`, or end it with `atoll leave %s`", dir, word, word)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return store.Explain(fmt.Errorf("create node folder: %w", err), dir)
	}
	return f.KeepTyped(c.parsed, c.Learner)
}

// takePart shows a node that run is.
func (c *JoinCmd) takePart(ctx context.Context, out *cli.Console, run func(context.Context, node.Config) (status.Snapshot, error)) error {
	outliveReaders()
	var bar *cli.Line
	if !c.JSON {
		if out, bar = withLine(out); bar != nil {
			defer bar.Draw("")
		}
	}
	cfg, err := c.config(out)
	if err != nil {
		return err
	}
	collectEarly()
	p := statustext.NewProgress(out, bar, c.JSON, cfg.Dir)
	shownAt, err := c.open(out)
	if err != nil {
		return err
	}
	defer shownAt.close()
	cfg.OnStatus = shownAt.also(p.Offer)
	out.Say("joining run %v in %s: %s", cfg.Link.Run, cfg.Dir, plan(cfg))
	ended := make(chan error, 1)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		p.Show()
	}()
	go func() {
		last, err := run(ctx, cfg)
		shownAt.offer(last)
		p.Finish(last, err)
		ended <- err
	}()
	asked := ctx.Done()
	for {
		select {
		case err := <-ended:
			<-shown
			return err
		case <-asked:
			asked = nil
			out.Say("leaving: publishing what is not published yet; interrupt again to end at once")
		case <-out.Abort:
			return errAborted
		}
	}
}

// plan says what happens first.
func plan(cfg node.Config) string {
	switch n := len(cfg.Link.Peers) + len(cfg.Peers); {
	case n == 0 && (cfg.Genesis != nil || isNodeFolder(cfg.Dir) && !isFile(cfg.Dir, keyName)):
		return "as its first node"
	case n == 0 && !inspect.HasNode(cfg.Dir):
		return "with a member on this network"
	case n == 0:
		return "from its folder, with the peers it knows"
	default:
		return "dialling " + cli.Plural(n, "address", "addresses")
	}
}

// config checks the flags and makes the node's configuration of them.
func (c *JoinCmd) config(out *cli.Console) (node.Config, error) {
	handler, err := logHandler(out, c.LogLevel)
	if err != nil {
		return node.Config{}, err
	}
	if err := c.sortWords(); err != nil {
		return node.Config{}, err
	}
	if err := c.check(); err != nil {
		return node.Config{}, err
	}
	cfg := node.Config{Dir: c.Dir}
	if err := c.findRun(&cfg, out); err != nil {
		return cfg, err
	}
	cfg.Dir = cmp.Or(cfg.Dir, defaultDir(cfg.Link.Run))
	if err := mayBeFolder(cfg.Dir); err != nil {
		return cfg, err
	}
	if cfg.Settings, err = c.recall(cfg.Dir); err != nil {
		return cfg, err
	}
	if cfg.Name, err = machineName(c.As); err != nil {
		return cfg, err
	}
	cfg.Limits, err = c.limits()
	cfg.Listen, cfg.Profile, cfg.Peers, cfg.NoMDNS = c.Listen, c.Profile, c.Peer, c.NoMDNS
	cfg.Observe, cfg.Learner, cfg.Init, cfg.Data = c.Observe, c.Learner, c.Init, c.Data
	cfg.Threads, cfg.Precision, cfg.Batch, cfg.Pace = c.Threads, c.Precision, c.Batch, c.Pace
	cfg.Export, cfg.ExportEvery, cfg.EvalBytes, cfg.Trace = c.Export, uint64(c.Every), c.evalBytes(out), c.Trace
	cfg.KeepBytes, cfg.DataDisk, cfg.Stay = int64(c.Keep), int64(c.DataDisk), c.Stay
	cfg.Log = slog.New(handler)
	return cfg, err
}

// recall takes what the folder keeps where nothing else was given.
func (c *JoinCmd) recall(dir string) ([]status.Setting, error) {
	if c.parsed == nil {
		return nil, nil
	}
	inForce, err := settings.Recall(c.parsed, dir)
	if err != nil {
		return nil, err
	}
	if err := c.nodeFlags.check(); err != nil {
		return nil, settings.Fault(dir, err)
	}
	return inForce, nil
}

// sortWords tells the link from the folder, in whatever order they are. What is not typed is taken from the environment, which kong has done for words that
// are where they would be if both were typed.
func (c *JoinCmd) sortWords() error {
	var links, dirs []string
	for _, word := range []string{c.Link, c.Dir, c.Also} {
		switch {
		case joinlink.Is(word):
			links = append(links, word)
		case word != "" && (len(dirs) == 0 || word != os.Getenv(dirEnv)):
			dirs = append(dirs, word)
		}
	}
	switch {
	case len(dirs) > 1:
		return cli.BadUsage("%q and %q are two folders: a join link begins with %q; copy it whole, without quotes or brackets", quoted(dirs[0]), quoted(dirs[1]), joinlink.Scheme)
	case len(links) > 2:
		return cli.BadUsage("these are three join links: pass one, or two of the same run")
	case len(links) == 0 && len(dirs) > 0:
		links = append(links, os.Getenv(envName([]string{"join"}, "link")))
	case len(links) == 0:
		links = append(links, "")
	}
	c.Link, c.Dir, c.Also = links[0], os.Getenv(dirEnv), ""
	if len(dirs) > 0 {
		c.Dir = dirs[0]
	}
	if len(links) == 2 {
		return c.addLink(links[1])
	}
	return nil
}

// addLink makes one link of two of the same run: an old one with an invite, and one that says where a member is now.
func (c *JoinCmd) addLink(other string) error {
	first, err := joinlink.Parse(c.Link)
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	second, err := joinlink.Parse(other)
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	both, err := second.With(first) // the newer one is mostly typed last: its addresses go first
	if err != nil {
		return cli.BadUsage("%v: a node takes part in one run; start another one in a folder of its own", err)
	}
	c.Link = both.String()
	return nil
}

// logHandler writes log lines of a level and above to stderr, also the lines of the
// network library: its connection errors are events here.
func logHandler(out *cli.Console, level string) (slog.Handler, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, err
	}
	handler := statustext.LogHandler(out, least)
	p2p.LibraryLog(handler)
	return handler, nil
}

// maxBatch is the most rows that a node takes.
const maxBatch = 1 << 12

// check refuses flags that cannot be meant, before anything is made of them.
func (c *JoinCmd) check() error {
	if c.Link != "" && c.Genesis != "" {
		return cli.BadUsage("pass either a join link or --genesis, not both")
	}
	if err := c.nodeFlags.check(); err != nil {
		return err
	}
	if err := p2p.CheckListen(c.Listen); err != nil {
		return cli.BadUsage("--listen: %v", err)
	}
	for _, addr := range c.Peer {
		if _, err := address.PeerIDOf(addr); err != nil {
			return cli.BadUsage("--peer %q is not an address that ends in /p2p/ID, like /ip4/192.0.2.1/tcp/4001/p2p/12D3...", addr)
		}
	}
	return nil
}

// watchedBytes is the held-out text of a live evaluation that somebody watches:
// two digits of bits per byte for a few per cent of the machine's time.
const watchedBytes = 16 << 10

func (c *JoinCmd) evalBytes(out *cli.Console) int {
	switch {
	case c.EvalBytes != nil:
		return *c.EvalBytes
	case isTerminal(out.Err), c.Web != "":
		return watchedBytes
	}
	return 0
}

// findRun finds out which run is meant: by link, genesis file or folder.
func (c *JoinCmd) findRun(cfg *node.Config, out *cli.Console) (err error) {
	if c.Link != "" {
		if cfg.Link, err = joinlink.Parse(c.Link); err != nil {
			return cli.BadUsage("%v", err)
		}
	}
	switch {
	case c.Genesis != "":
		b, g, err := genesisFile(c.Genesis)
		if err != nil {
			return err
		}
		cfg.Genesis = b
		return c.own(cfg, g, filepath.Dir(c.Genesis))
	case c.Link == "":
		if cfg.Dir, err = (dirArg{c.Dir}).folder(out); errors.Is(err, fs.ErrNotExist) {
			return cli.BadUsage("%v; a join link begins with %q, copy it whole", err, joinlink.Scheme)
		}
		if err != nil {
			return err
		}
		g, err := inspect.FolderGenesis(cfg.Dir)
		if errors.Is(err, inspect.ErrNoNodeFolder) {
			return cli.BadUsage("%s holds no run yet: pass a join link as well, which begins with %q, or make a run there with `atoll new %s`", cfg.Dir, joinlink.Scheme, status.ShellWord(cfg.Dir))
		}
		if err != nil {
			return err
		}
		return c.own(cfg, g, cfg.Dir)
	}
	return nil
}

// own takes the run of a genesis, and the key of its owner from a folder, if it is there.
func (c *JoinCmd) own(cfg *node.Config, g genesis.Genesis, dir string) (err error) {
	cfg.Link.Run = g.RunID()
	if g.Admission() == genesis.Open {
		return nil
	}
	cfg.Owner, err = readOwner(cmp.Or(c.Owner, filepath.Join(dir, ownerName)), g)
	if errors.Is(err, fs.ErrNotExist) && c.Owner == "" {
		return nil // a node that was here before has its certificate in its folder
	}
	if err == nil {
		cfg.Invite, err = readInvite(filepath.Join(dir, node.InviteFile))
	}
	return err
}

// readInvite reads the invite that atoll new wrote for the first node's link, nil if there is none.
func readInvite(path string) (*member.Pass, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the invite of the first node's link: %w", err)
	}
	pass, err := member.ParsePass(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s %w: delete it, and the next start makes a new one", path, node.ErrDamaged)
	}
	return &pass, nil
}

// genesisFile reads the genesis that atoll new wrote.
func genesisFile(path string) (raw []byte, g genesis.Genesis, err error) {
	raw, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, g, fmt.Errorf("genesis %s does not exist; make one with `atoll new`", path)
	}
	if err != nil {
		return nil, g, fmt.Errorf("genesis: %w", err)
	}
	if g, err = genesis.Decode(raw); err != nil {
		return nil, g, fmt.Errorf("%s: %w", path, err)
	}
	return raw, g, nil
}

// readOwner reads the key of a run's owner.
func readOwner(path string, g genesis.Genesis) (ed25519.PrivateKey, error) {
	key, err := store.ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no owner's key %s (%w): pass the file owner that atoll new wrote", path, err)
	}
	if err == nil && !slices.Contains(g.Owners, wire.PeerIDOf(key)) {
		err = fmt.Errorf("%s: the key in it is not of an owner of run %v: pass the file that atoll new wrote beside its genesis", path, g.RunID())
	}
	return key, err
}

// defaultDir is where the node of a run lives unless told otherwise.
func defaultDir(run wire.RunID) string {
	return "." + string(filepath.Separator) + "atoll-" + run.String()
}
