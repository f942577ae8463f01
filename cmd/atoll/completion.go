package main

import (
	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/completion"
)

const completionHelp = `
Prints a script that completes commands, flags and their values in a shell. Load it where your shell reads its settings.

    atoll completion bash > ~/.local/share/bash-completion/completions/atoll
    atoll completion zsh > ~/.zfunc/_atoll                  with fpath+=(~/.zfunc) before compinit in ~/.zshrc
    atoll completion fish > ~/.config/fish/completions/atoll.fish`

// CompletionCmd is `atoll completion`.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell that the script is for: ${enum}."`
}

// Help implements kong.HelpProvider.
func (*CompletionCmd) Help() string { return completionHelp }

// Run prints the script.
func (c *CompletionCmd) Run(app *kong.Kong, out *cli.Console) error {
	out.Answer("%s", completion.Script(c.Shell, app.Model.Node))
	return nil
}
