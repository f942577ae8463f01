package testnet_test

// This file holds the rules of the laboratory: a module of its own below this one.

// lab is the laboratory, with all that is below it.
const lab = "testnet/lab/..."

func isLab(pkg string) bool { return matches(lab, pkg) }

// labLayers is the order of its packages.
var labLayers = []rule{
	{list("testnet/lab/trials testnet/lab/program"), nil,
		"a file of lines, whatever they say; a program, whatever it does"},
	{list("testnet/lab/fleet"), nil,
		"chips that fail are arithmetic alone: what is known of the program are constants, with where they were measured"},
	{list("testnet/lab/aggregation"), list("optimizer/outer optimizer/outer/tune tensor/codec"),
		"who sends what to whom is arithmetic; bytes and seconds of a delta are those that tune goes by"},
	{list("testnet/lab/sweep"), list("testnet/lab/trials testnet/baseline/lockstep testnet/fault testnet/sim node/core optimizer optimizer/outer optimizer/trainer optimizer/trainer/corpus tensor tensor/codec tensor/llama"),
		"a sweep is the simulator's worlds and the trainers beside them: no sockets, no processes, no node"},
	{list("testnet/lab/sweep/cli"), list("testnet/lab/program testnet/lab/sweep"),
		"the command reads flags, calls and prints"},
	{list("testnet/lab/thin"), list("testnet/lab/trials testnet/lab/program testnet/sim node/genesis optimizer/outer optimizer/outer/tune tensor tensor/codec tensor/llama"),
		"it starts programs as people do, and reads what they print; its cells are worlds of the simulator at what tune chooses"},
	{list("testnet/lab/thin/cli"), list("testnet/lab/program testnet/lab/thin"),
		"the command reads flags, calls and prints"},
	{list("testnet/lab/headline"), list("testnet testnet/lab/sweep testnet/lab/trials testnet/lab/program testnet/lab/fleet node/genesis node/hardware node/status node/trace " +
		"optimizer/trainer optimizer/trainer/corpus tensor tensor/llama"),
		"it starts programs as people do, and reads what they leave; it evaluates what other programs trained, and draws as sweep draws"},
	{list("testnet/lab/tokenizers"), list("testnet/lab/trials testnet/lab/program optimizer/trainer/corpus"),
		"it starts programs as people do, and reads what they print; texts are those that come with atoll"},
	{list("testnet/lab/outsider"), list("testnet/lab/trials testnet/lab/program gossip/hello gossip/member gossip/p2p gossip/wire node/genesis node/joinlink node/status node/store tensor/codec"),
		"it starts programs as people do, hears on their side what they pass on, and forges what nodes show each other"},
	{list("testnet/lab/size"), list("gossip/wire node/core node/genesis node/hardware optimizer/outer tensor/codec"),
		"it does to one fragment what a node does to each, without one"},
	{list("testnet/lab/link"), list("gossip/hello gossip/p2p testnet/shaping gossip/wire"),
		"hosts that load a link know no model and no protocol of nodes"},
	{list("testnet/lab/ledger"), list("gossip/wire node/store node/hardware"),
		"a ledger by itself: who writes it and who reads it does not matter"},
	{list("testnet/lab/python"), list("tensor"),
		"starting a program needs to know the processor, and nothing of what is measured"},
	{list("testnet/lab/torch"), list("testnet/lab/python optimizer optimizer/trainer optimizer/trainer/corpus tensor tensor/llama"),
		"it trains with the trainer alone, beside a program in Python"},
	{list("testnet/lab/bench"), list("testnet/lab/python node node/genesis node/hardware node/store gossip/hello gossip/p2p gossip/wire optimizer optimizer/outer optimizer/trainer tensor tensor/codec tensor/llama"),
		"parts of a machine are measured with the packages that use them, each without the others"},
	{list("testnet/lab"), list("testnet/lab/... node/limits node/genesis node/status optimizer optimizer/outer tensor tensor/codec tensor/llama"),
		"the program reads flags, calls and prints"},
}

// labExceptions are imports of foreign modules that the rules of the product forbid.
var labExceptions = []rule{
	{list("testnet/lab"), list("github.com/alecthomas/kong"),
		"the program has flags, as atoll has"},
	{list("testnet/lab/outsider"), list("github.com/libp2p/... github.com/multiformats/go-multiaddr/... github.com/multiformats/go-multistream"),
		"an outsider does on a connection what p2p never does"},
}
