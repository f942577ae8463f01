package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/data"
	"atoll/cmd/atoll/internal/settings"
	"atoll/node/joinlink"
)

const description = `Train one language model on many machines without a leader.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by peers, 4 timed out. A flag that is not given is taken from the environment (ATOLL_JOIN_UP for --up of atoll join; ATOLL_DIR, ATOLL_THREADS and ATOLL_LOG_LEVEL for every command), then from the TOML file of --config, then, where it is a setting of a node, from the node's folder.`

// commandLine is the whole command line. The help text has the same order.
type commandLine struct {
	Config kong.ConfigFlag `help:"TOML file with values of flags. Those at the top are for every command, those in a table for the command of that name." placeholder:"FILE"`

	Testnet     TestnetCmd     `cmd:"" help:"Try it: train one model with several nodes on this machine."`
	New         NewCmd         `cmd:"" help:"Make a folder with a new run."`
	Standin     StandInCmd     `cmd:"" hidden:"" help:"Be a learner that computes nothing. For --learner standin."`
	Baseline    BaselineCmd    `cmd:"" hidden:"" help:"Be a member of a baseline. For testnet."`
	TestnetNode TestnetNodeCmd `cmd:"" hidden:"" help:"Be a node of a testnet. For testnet."`
	Join        JoinCmd        `cmd:"" help:"Take part in a run."`
	Relay       RelayCmd       `cmd:"" help:"Introduce nodes at home to each other and pass on what they send."`
	Status      StatusCmd      `cmd:"" help:"Show the whole run as one node sees it."`
	Top         TopCmd         `cmd:"" help:"Show a node or a testnet on the full screen."`
	Logs        LogsCmd        `cmd:"" help:"Show the events of a node."`
	Peers       PeersCmd       `cmd:"" help:"Show who takes part: hardware, shares, invites."`
	Invite      InviteCmd      `cmd:"" help:"Make a join link with an invite."`
	Revoke      RevokeCmd      `cmd:"" help:"Revoke the admission of a node or of an invite."`
	Pause       PauseCmd       `cmd:"" help:"Make a running node cost nothing for now."`
	Resume      ResumeCmd      `cmd:"" help:"Let a paused node go on."`
	Set         SetCmd         `cmd:"" help:"Show or change what a node may cost, and how it works."`
	Leave       LeaveCmd       `cmd:"" help:"Make a running node leave in order."`
	Ledger      LedgerCmd      `cmd:"" help:"Account for every delta and token."`
	Report      ReportCmd      `cmd:"" help:"Write the results of a run as a page to keep."`
	Trace       TraceCmd       `cmd:"" help:"Show where the time of deltas goes."`
	Verify      VerifyCmd      `cmd:"" help:"Replay a ledger and compare its digests."`
	Doctor      DoctorCmd      `cmd:"" help:"Check a folder, a link or a learner, and say what to do."`
	Eval        EvalCmd        `cmd:"" help:"Measure the model in bits per byte of held-out text."`
	Export      ExportCmd      `cmd:"" help:"Write the model in Hugging Face's form, for other programs."`
	Generate    GenerateCmd    `cmd:"" help:"Write text with the model."`
	Data        data.Cmd       `cmd:"" help:"Make tokenizers and corpora."`
	Key         KeyCmd         `cmd:"" help:"Show, export or import a node's identity."`
	Bench       BenchCmd       `cmd:"" help:"Measure what this machine can do."`
	Sim         SimCmd         `cmd:"" help:"Simulate whole networks of nodes in virtual time."`
	Completion  CompletionCmd  `cmd:"" help:"Complete commands and flags in bash, zsh or fish: show how."`
	Version     VersionCmd     `cmd:"" help:"Show the version."`
	Help        HelpCmd        `cmd:"" help:"Show what a command does."`
}

func main() {
	ctx, abort, stop := interrupts(func() { os.Exit(exitKilled) })
	code := run(ctx, os.Args[1:], &cli.Console{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Abort: abort})
	stop()
	os.Exit(code)
}

// sameRequest is how close together two signals are one request: timeout of GNU
// sends one to the process and one to its group.
const sameRequest = 500 * time.Millisecond

// interrupts returns a context and a channel. The first SIGINT, SIGTERM or, where nohup does not shield from it, SIGHUP
// of a terminal that closes ends the context. The second closes the channel, unless it is the same request. With the
// third the process dies, as not every command listens.
func interrupts(die func()) (ctx context.Context, abort <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	again := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, ok := <-signals; !ok {
			return
		}
		first := time.Now()
		cancel()
		for range signals {
			if time.Since(first) >= sameRequest {
				close(again)
				break
			}
		}
		for range signals {
			die()
		}
	}()
	return ctx, again, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}

// outliveReaders has the process go on when who reads its output is gone: Ctrl-C ends tee as well, and a node has yet to
// publish what is left. The processes that it starts die as ever.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// run is main without the process: it parses args, runs the command and
// returns the exit code.
func run(ctx context.Context, args []string, c *cli.Console) (code int) {
	var line commandLine
	exited := -1
	parser, err := kong.New(&line,
		kong.Name("atoll"),
		kong.Description(description),
		kong.Writers(c.Out, c.Err),
		kong.Exit(func(code int) { exited = code }),
		kong.PostBuild(environment),
		kong.Configuration(settings.LoadTOML),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Bind(c),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		panic("command line: " + err.Error()) // a mistake in the struct above; any test finds it
	}
	kongcompletion.Register(parser)
	if exited >= 0 { // a shell asked what may come next
		return exited
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	args = respelled(joinlink.Whole(args))
	c.Typed = args
	parsed, err := parser.Parse(args)
	if exited >= 0 { // help was asked for and shown
		return exited
	}
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		parsed = wrong.Context
		if slices.ContainsFunc(args, func(word string) bool { return word == "--dir" || strings.HasPrefix(word, "--dir=") }) {
			err = cli.BadUsage("a folder is typed without --dir")
		}
	}
	err = cli.Plainly(err)
	if ours := neighbour(args); ours != nil {
		err = ours
	}
	if err == nil {
		err = typedZero(parsed)
	}
	if err == nil {
		sayUnread(c, parsed)
		err = parsed.Run()
	}
	return fail(c, settings.Whence(parsed, args, err), helpFor(parsed))
}

// typedZero finds a number, a size or a time that was typed as 0, where 0 is what commands take for none: it would be the default,
// or no limit at all, which nobody means who types it. keep has a word for none, and refuses a 0 itself.
func typedZero(parsed *kong.Context) error {
	for _, f := range parsed.Flags() {
		zero := f.Target.CanInt() && f.Target.Int() == 0 || f.Target.CanUint() && f.Target.Uint() == 0 || f.Target.CanFloat() && f.Target.Float() == 0
		_, bytes := f.Target.Interface().(size)
		_, word := f.Target.Interface().(keep)
		if f.Set && zero && !word && (bytes || strings.Contains(f.Help, "Default:") && !strings.Contains(f.Help, "Default: none")) {
			if f.Group != nil {
				return cli.BadUsage("--%s is 0; use more, or `atoll set --reset %s` for the default", f.Name, f.Name)
			}
			return cli.BadUsage("--%s is 0; use more, or leave it out for the default", f.Name)
		}
	}
	return nil
}

// respelled puts --tokens=-5 for --tokens -5, which kong takes for two flags: whoever reads the number says better what is wrong.
func respelled(args []string) (spelled []string) {
	if len(args) == 1 && args[0] == "--version" {
		return []string{"version"}
	}
	for _, arg := range args {
		last := len(spelled) - 1
		if negative(arg) && last >= 0 && strings.HasPrefix(spelled[last], "--") && !strings.Contains(spelled[last], "=") {
			spelled[last] += "=" + arg
			continue
		}
		spelled = append(spelled, arg)
	}
	return spelled
}

// negative reports whether an argument is a number below zero, with or without a unit. No flag begins so.
func negative(arg string) bool {
	digits, dash := strings.CutPrefix(arg, "-")
	return dash && digits != "" && strings.ContainsRune(".0123456789", rune(digits[0]))
}
