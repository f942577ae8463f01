package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"atoll/node"
)

// writeMan writes a page of the manual for each command into a folder: atoll.1, atoll-join.1.
func writeMan(dir string, root *kong.Node) (pages []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var write func(n *kong.Node) error
	write = func(n *kong.Node) error {
		path := filepath.Join(dir, manName(n)+".1")
		if err := os.WriteFile(path, []byte(manPage(n)), 0o644); err != nil {
			return err
		}
		pages = append(pages, path)
		for _, child := range visible(n) {
			if err := write(child); err != nil {
				return err
			}
		}
		return nil
	}
	return pages, write(root)
}

// visible are the commands below one that are not hidden.
func visible(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Type != kong.CommandNode || c.Hidden })
}

func manName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// manPage is the help of a command as a page of the manual.
func manPage(n *kong.Node) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"atoll\"\n", roff(strings.ToUpper(manName(n))), roff(node.Agent))
	purpose, rest, _ := strings.Cut(n.Help, "\n")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(n)), roff(strings.TrimSuffix(purpose, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roff(n.FullPath()), roff(synopsis(n)))
	b.WriteString(".SH DESCRIPTION\n" + roffText(rest+"\n\n"+n.Detail))
	manArguments(&b, n)
	manFlags(&b, n)
	manCommands(&b, n)
	b.WriteString(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 refused by peers, 4 timed out.\n")
	b.WriteString(".SH ENVIRONMENT\nA flag that is not given is taken from its variable, which stands beside it, then from the TOML file of \\-\\-config.\n")
	if parent := n.Parent; parent != nil {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(manName(parent)))
	}
	return b.String()
}

// synopsis is what stands behind the name of a command.
func synopsis(n *kong.Node) string {
	var parts []string
	if len(visible(n)) > 0 {
		parts = append(parts, "COMMAND")
	}
	for _, p := range n.Positional {
		parts = append(parts, p.Summary())
	}
	return strings.Join(append(parts, "[flags]"), " ")
}

func manArguments(b *strings.Builder, n *kong.Node) {
	if len(n.Positional) == 0 {
		return
	}
	b.WriteString(".SH ARGUMENTS\n")
	for _, p := range n.Positional {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(p.Summary()), roff(p.Help))
	}
}

func manFlags(b *strings.Builder, n *kong.Node) {
	b.WriteString(".SH OPTIONS\n")
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(flagUsage(f)), roff(f.Help))
			if len(f.Envs) > 0 {
				fmt.Fprintf(b, "(%s)\n", roff(strings.Join(f.Envs, ", ")))
			}
		}
	}
}

// flagUsage is how a flag is typed.
func flagUsage(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Tag.Negatable != "" {
		text = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	if !f.IsBool() {
		text += "=" + f.FormatPlaceHolder()
	}
	return text
}

func manCommands(b *strings.Builder, n *kong.Node) {
	below := visible(n)
	if len(below) == 0 {
		return
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range below {
		fmt.Fprintf(b, ".TP\n.BR %s (1)\n%s\n", roff(manName(c)), roff(c.Help))
	}
}

// roffText is a text of paragraphs, in which indented lines are examples.
func roffText(text string) string {
	var b strings.Builder
	example := false
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		switch indented := strings.HasPrefix(l, "  "); {
		case indented && !example:
			b.WriteString(".PP\n.nf\n")
			example = true
		case !indented && example:
			b.WriteString(".fi\n")
			example = false
		}
		switch {
		case strings.TrimSpace(l) == "":
			b.WriteString(".PP\n")
		default:
			b.WriteString(roff(l) + "\n")
		}
	}
	if example {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff is a text without what roff would take for its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
