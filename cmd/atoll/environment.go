package main

import (
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
)

// envPrefix begins the variables of the environment that are read for flags.
const envPrefix = "ATOLL"

// everywhere are the flags that mean the same to every command. Their variables have no
// command in their name. One for all would leak from one command into another: a budget of
// new is no number of tokens for generate to write.
var everywhere = []string{"config", "dir", "log-level", "threads"}

// notTheNodes are commands whose folder is not one of a node that is there.
var notTheNodes = []string{"testnet", "new", "bench", "baseline"}

// dirEnv is the variable of the folder of a node.
const dirEnv = "ATOLL_DIR"

// inEnvironment are the arguments that have a variable.
var inEnvironment = []string{"dir", "link"}

// environment gives every flag its variable: ATOLL_JOIN_UP for --up of atoll join, and
// ATOLL_DIR for the folder of every command.
func environment(k *kong.Kong) error {
	nameFlags(k.Model.Node, nil)
	return nil
}

// nameFlags leaves out what is set for good: that is typed, as a variable would change it at every call.
func nameFlags(n *kong.Node, path []string) {
	for _, f := range n.Flags {
		if f.Name == "help" || n.Name == "set" || slices.Equal(f.Envs, []string{"-"}) {
			setEnv(f)
			continue
		}
		setEnv(f, envName(path, f.Name))
	}
	for _, p := range n.Positional {
		if slices.Contains(inEnvironment, p.Name) && !p.IsCumulative() {
			p.Tag.Envs = []string{envName(path, p.Name)}
		}
	}
	for _, child := range n.Children {
		nameFlags(child, append(slices.Clone(path), child.Name))
	}
}

func setEnv(f *kong.Flag, names ...string) { f.Envs, f.Tag.Envs = names, names }

// envName is the variable of a flag of the command at a path.
func envName(path []string, flag string) string {
	words := []string{envPrefix}
	if !isEverywhere(path, flag) {
		words = append(words, path...)
	}
	return strings.ToUpper(strings.ReplaceAll(strings.Join(append(words, flag), "_"), "-", "_"))
}

func isEverywhere(path []string, flag string) bool {
	if flag == "dir" && len(path) > 0 && slices.Contains(notTheNodes, path[0]) {
		return false
	}
	return slices.Contains(everywhere, flag)
}

// unread are the variables that look as if they were for a flag of a command and are not, each
// with the one that is.
func unread(n *kong.Node) (found [][2]string) {
	path := strings.Fields(n.FullPath())[1:]
	for _, f := range n.Flags {
		old := envName(nil, f.Name)
		if _, set := os.LookupEnv(old); set && len(f.Envs) > 0 && f.Envs[0] != old {
			found = append(found, [2]string{old, envName(path, f.Name)})
		}
	}
	return found
}

// misspelt are the variables that nearly have the name of one that some command reads, each with that name.
func misspelt(app *kong.Node) (found [][2]string) {
	known := variables(app)
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		if !strings.HasPrefix(name, envPrefix+"_") || slices.Contains(known, name) {
			continue
		}
		if meant := cli.Nearest(name, known); meant != "" {
			found = append(found, [2]string{name, meant})
		}
	}
	return found
}

// variables are those of the flags of a command and of all below it.
func variables(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		names = append(names, f.Envs...)
	}
	for _, p := range n.Positional {
		names = append(names, p.Tag.Envs...)
	}
	for _, child := range n.Children {
		names = append(names, variables(child)...)
	}
	return names
}

// sayUnread tells of them: a setting that nobody reads would surprise later.
func sayUnread(c *cli.Console, typed *kong.Context) {
	selected := typed.Selected()
	if selected == nil {
		return
	}
	for _, v := range append(unread(selected), misspelt(typed.Model.Node)...) {
		c.Say("note: %s is not read; use %s", v[0], v[1])
	}
}
