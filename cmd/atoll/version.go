package main

import (
	"runtime"
	"runtime/debug"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node"
	"atoll/tensor"
)

const versionHelp = `
Shows the version that peers see, the build, and the kernel that computes matrix products.

    atoll version
    atoll version --json`

// VersionCmd is `atoll version`.
type VersionCmd struct {
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*VersionCmd) Help() string { return versionHelp }

// versions is the answer of `atoll version`.
type versions struct {
	Agent    string `json:"agent"`            // what peers see
	Commit   string `json:"commit,omitempty"` // of the source, where the build knows it
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernel   string `json:"kernel"` // of the matrix product on this machine
}

// Run shows the version.
func (c *VersionCmd) Run(out *cli.Console) error {
	v := versions{
		Agent: node.Agent, Commit: commit(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernel: tensor.Kernel(),
	}
	if c.JSON {
		return out.JSON(v)
	}
	rows := [][]string{{"atoll", v.Agent}, {"go", v.Go}, {"platform", v.Platform}, {"kernel", v.Kernel}}
	if v.Commit != "" {
		rows = append(rows, []string{"commit", v.Commit})
	}
	return cli.Table(out.Out, rows...)
}

// commit is the revision that the binary was built from, if it is known.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " with changes"
		}
	}
	return revision + dirty
}
