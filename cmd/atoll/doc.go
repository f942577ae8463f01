// Command atoll trains one language model on many machines without a leader.
//
//	atoll testnet                         try it: several nodes on this machine train one model
//	atoll new DIR                         begin a run
//	atoll join LINK                       take part in one
//
// Every command has --help with an example. What a command answers goes to
// stdout, everything else to stderr; --json makes the answer JSON. Exit codes: 0
// done, 1 failed, 2 wrong usage, 3 refused by peers, 4 timed out. A flag that is
// not given is taken from the environment (ATOLL_JOIN_UP for --up of atoll join,
// ATOLL_DIR for the folder of every command), then from the TOML file of --config,
// then, where it is a setting of a node, from settings.toml in the node's folder.
//
// Each command is one file: its help text, its flags, its Run. Those of atoll data
// are a package, internal/data. Flags from files are read and kept in internal/settings.
// Commands read what packages node and testnet offer and print it; they hold no logic
// of a run.
//
// Files, each may use those above it:
//
//	memory                    how the garbage collector of a node works
//	quantity                  amounts, sizes and shares as people type them
//	exit                      exit codes, and errors that point at the help of a command
//	meter                     how far a long answer is
//	terminal, terminal_unix, terminal_windows  whether somebody watches, and how large the window is
//	dir                       the folder of a node, and which of several a command is about
//	suggest                   what somebody meant who mistyped
//	environment               flags from the environment
//	limitflags                what a node may cost its owner
//	flags                     what commands that train have in common
//	web                       the page of a run
//	nodeflags                 the flags of a node that stay with its folder
//	statusworld, status, top  what a node or a world does
//	leave, pause, logs, peers, ledger, verify  ask a node, or look into its folder
//	set                       show and change what stays
//	join, relay, testnet      run nodes
//	bench, doctor, learner    see whether this machine, or a program that trains, will do
//	invite, revoke            who may take part
//	newspec, newprint, new    begin a run
//	export, eval, generate, key, trace, report  make something of what a node has
//	sim, sim_script           a run in virtual time
//	testnetnode, baseline, standin  hidden: the processes of worlds and learners
//	version, help             what every program has
//	main                      the command line with all commands
package main
