package main

import (
	"context"
	"fmt"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/status"
)

// builtInOnly refuses what this program can do with the models alone that it knows.
func builtInOnly(g genesis.Genesis, command string) error {
	if g.BuiltIn() {
		return nil
	}
	return fmt.Errorf("atoll %s knows built-in models only, and this run trains %s: atoll export writes its model for other programs", command, g.ModelLabel())
}

const exportHelp = `
Writes the newest model of a node, running or not, as a folder that the from_pretrained of Hugging Face's transformers loads: config.json, model.safetensors, the tokenizer, and a README.md that says what it is. A model that atoll new --from took comes out as it went in, with new values: its tokenizer, chat template and generation config, and weights of the same type, rounded to the nearest. For a run that trains adapters it writes adapters, for PEFT.

    atoll export first --out model
    python3 -c "from transformers import AutoModelForCausalLM as M; M.from_pretrained('model')"`

// ExportCmd is `atoll export`.
type ExportCmd struct {
	dirArg
	Out   string `help:"Folder to write. It must not exist yet." required:"" placeholder:"DIR"`
	DType string `name:"dtype" help:"Type of the weights: ${enum}. auto is the one that they came in, or float32." enum:"auto,float32,bfloat16,float16" default:"auto"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*ExportCmd) Help() string { return exportHelp }

// exported is the answer of `atoll export --json`.
type exported struct {
	Out          string `json:"out"`
	Params       int    `json:"params"`
	TokensFolded uint64 `json:"tokens_folded"`
}

// Run writes the folder.
func (c *ExportCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, g, slab, folded, err := c.model(ctx, out)
	if err != nil {
		return err
	}
	done := writing(out, c.Out, g.ExportBytes(asked(c.DType)))
	err = inspect.Export(dir, g, c.Out, slab, folded, asked(c.DType))
	done()
	if err != nil {
		return err
	}
	if c.JSON {
		return out.JSON(exported{c.Out, g.Params(), folded})
	}
	out.Answer("%s: %s parameters after %s tokens", c.Out, status.Count(float64(g.Params())), status.Count(float64(folded)))
	return nil
}
