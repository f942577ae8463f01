// Package completion writes scripts by which shells complete commands, flags and their values.
package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Script is that for bash, zsh or fish, of a program's commands below root.
func Script(shell string, root *kong.Node) string {
	script := map[string]func([]shellCommand) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[shell]
	return script(shellCommands(root))
}

// shellCommand is a command as a shell completes it.
type shellCommand struct {
	path     string // such as "atoll data build"
	help     string
	commands []shellWord // below it
	flags    []shellFlag
}

// shellWord is a word with what it means.
type shellWord struct{ word, help string }

// shellFlag is a flag of a command.
type shellFlag struct {
	shellWord
	takesValue bool
	values     []string // that it may have, if they are known
}

// shellCommands are a command and all below it that are not hidden.
func shellCommands(n *kong.Node) []shellCommand {
	c := shellCommand{path: n.FullPath(), help: n.Help}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			c.flags = append(c.flags, shellFlags(f)...)
		}
	}
	all := []shellCommand{c}
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			all[0].commands = append(all[0].commands, shellWord{child.Name, child.Help})
			all = append(all, shellCommands(child)...)
		}
	}
	return all
}

func shellFlags(f *kong.Flag) []shellFlag {
	flag := shellFlag{shellWord: shellWord{"--" + f.Name, f.Help}, takesValue: !f.IsBool()}
	for value := range f.EnumMap() {
		flag.values = append(flag.values, value)
	}
	slices.Sort(flag.values)
	flags := []shellFlag{flag}
	if f.Tag.Negatable != "" {
		flags = append(flags, shellFlag{shellWord: shellWord{"--no-" + f.Name, "The opposite of --" + f.Name + "."}})
	}
	return flags
}

// firstSentence is enough of a help text for a list.
func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// shellQuoted is a text in single quotes, for all three shells: what would end them is another character.
func shellQuoted(text string) string {
	return "'" + strings.NewReplacer("'", "’", `\`, "", "\n", " ").Replace(text) + "'"
}

// longerPaths are all commands but the program itself, as patterns of a case.
func longerPaths(commands []shellCommand, between string) string {
	var paths []string
	for _, c := range commands[1:] {
		paths = append(paths, `"`+c.path+`"`)
	}
	return strings.Join(paths, between)
}

// words joins the words of a list.
func words[T any](list []T, word func(T) string) string {
	var all []string
	for _, w := range list {
		all = append(all, word(w))
	}
	return strings.Join(all, " ")
}

func bashScript(commands []shellCommand) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of atoll for bash, made by: atoll completion bash
_atoll() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=atoll i commands= flags=
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${COMP_WORDS[i]}" in
    %s) at="$at ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $prev" in
`, longerPaths(commands, " | "))
	for _, c := range commands {
		for _, f := range c.flags {
			if f.takesValue {
				fmt.Fprintf(&b, "  \"%s %s\") COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n", c.path, f.word, shellQuoted(strings.Join(f.values, " ")))
			}
		}
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %q) commands=%s flags=%s ;;\n", c.path, shellQuoted(words(c.commands, func(w shellWord) string { return w.word })),
			shellQuoted(words(c.flags, func(f shellFlag) string { return f.word })))
	}
	b.WriteString(`  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
  fi
}
complete -o default -o bashdefault -F _atoll atoll`)
	return b.String()
}

func zshScript(commands []shellCommand) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#compdef atoll
# Completion of atoll for zsh, made by: atoll completion zsh
_atoll() {
  local at=atoll i
  local -a commands flags
  for ((i = 2; i < CURRENT; i++)); do
    case "$at $words[i]" in
    %s) at="$at $words[i]" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
`, longerPaths(commands, " | "))
	for _, c := range commands {
		for _, f := range c.flags {
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(&b, "  \"%s %s\") compadd -- %s; return ;;\n", c.path, f.word, strings.Join(f.values, " "))
			case f.takesValue:
				fmt.Fprintf(&b, "  \"%s %s\") _files; return ;;\n", c.path, f.word)
			}
		}
	}
	b.WriteString("  esac\n  case \"$at\" in\n")
	described := func(w shellWord) string { return shellQuoted(w.word + ":" + firstSentence(w.help)) }
	for _, c := range commands {
		fmt.Fprintf(&b, "  %q)\n    commands=(%s)\n    flags=(%s) ;;\n", c.path, words(c.commands, described),
			words(c.flags, func(f shellFlag) string { return described(f.shellWord) }))
	}
	b.WriteString(`  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe flag flags
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _atoll ]]; then _atoll "$@"; else compdef _atoll atoll; fi`)
	return b.String()
}

func fishScript(commands []shellCommand) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Completion of atoll for fish, made by: atoll completion fish
function __atoll_at
  set -l at atoll
  for word in (commandline -opc)[2..-1]
    switch "$at $word"
      case %s
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
`, longerPaths(commands, " "))
	for _, c := range commands {
		at := fmt.Sprintf("complete -c atoll -n '__atoll_at %q'", c.path)
		for _, w := range c.commands {
			fmt.Fprintf(&b, "%s -f -a %s -d %s\n", at, w.word, shellQuoted(firstSentence(w.help)))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "%s -l %s -d %s", at, strings.TrimPrefix(f.word, "--"), shellQuoted(firstSentence(f.help)))
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(&b, " -x -a %s", shellQuoted(strings.Join(f.values, " ")))
			case f.takesValue:
				b.WriteString(" -r")
			}
			b.WriteString("\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
