package main

import "atoll/cmd/atoll/internal/cli"

// elsewhere are the names that other programs have for what ours do.
var elsewhere = map[string]string{
	"start": "join", "run": "join", "train": "join", "up": "join", "serve": "join LINK --observe", "stop": "leave", "down": "leave",
	"init": "new", "create": "new", "ps": "peers", "ls": "status", "list": "status", "log": "logs", "info": "status", "chat": "generate", "config": "set", "configure": "set",
}

// neighbour is the error of a command that is another program's, with ours in its place; nil for others.
func neighbour(args []string) error {
	if len(args) == 0 || elsewhere[args[0]] == "" {
		return nil
	}
	return cli.BadUsage("atoll has no %s: type `atoll %s`", args[0], elsewhere[args[0]])
}
