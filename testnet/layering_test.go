package testnet_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This file holds the direction of the dependencies. A package may import the
// standard library, the packages of this repository that its rule in layers names,
// and the modules whose rule in modules names it. What is not listed is
// forbidden. If you need more, change the table and say why there.

// modulePath is what imports of packages of this module begin with.
const modulePath = "atoll"

// rule says which packages may import what, and why no others. A name that ends
// in /... stands for the package before it and everything below that.
type rule struct {
	packages []string // relative to the module
	imports  []string // layers: packages, relative to the module; modules: import paths
	reason   string
}

// layers is the order of the packages of the product and of its proof. The first rule that
// matches a package is its rule. Those of the laboratory, a module of its own, are in labLayers.
var layers = []rule{
	{list("tensor"), nil,
		"the numeric ground floor knows nobody above it"},
	{list("tensor/nn"), list("tensor"),
		"an operation is arithmetic on flat memory"},
	{list("tensor/llama"), list("tensor tensor/nn"),
		"a model is operations on a slab; who trains it is not its business"},
	{list("tensor/safetensors"), list("tensor"),
		"a file of named values does not care what they are of"},
	{list("tensor/token"), nil,
		"a tokenizer turns text into numbers; what they are numbers of is the model's business"},
	{list("tensor/codec"), list("tensor"),
		"a format of numbers knows no model and no network"},
	{list("tensor/gen"), nil,
		"the generator of the kernels must build while the kernels do not"},

	{list("optimizer"), list("tensor"),
		"an optimizer is a pure function of parameters, gradients and state"},
	{list("optimizer/outer"), list("optimizer tensor tensor/codec"),
		"the outer step moves named flat vectors; it knows no model and no peers"},
	{list("optimizer/outer/tune"), list("optimizer/outer tensor/codec"),
		"it goes by what was measured of the outer step, and measures nothing itself"},
	{list("optimizer/outer/outertest"), list("optimizer/outer tensor/codec"),
		"rules for tests of what goes by rules"},
	{list("optimizer/rounds"), list("optimizer/outer optimizer/outer/outertest"),
		"rounds decide from headers which deltas a fold takes; the fold does not know why"},
	{list("optimizer/outer/oracle"), list("optimizer/outer tensor/codec optimizer/outer/outertest"),
		"it checks learners, so it has nothing of theirs but the names of what they are told"},
	{list("optimizer/trainer/corpus/documents"), nil,
		"files that others made are documents; who cuts them into tokens is not its business"},
	{list("optimizer/trainer/corpus/shards"), list("tensor/token"),
		"a shard is tokens and a hash, wherever it came from"},
	{list("optimizer/trainer/corpus/build"), list("optimizer/trainer/corpus/documents optimizer/trainer/corpus/shards tensor/token"),
		"documents become tokens here, and nowhere else"},
	{list("optimizer/trainer/corpus"), list("optimizer/trainer/corpus/documents"),
		"a corpus hands out tokens and does not care who learns from them"},
	{list("optimizer/trainer"), list("optimizer optimizer/trainer/corpus tensor tensor/llama"),
		"a trainer learns alone: rounds, deltas and peers are not its business"},

	{list("optimizer/trainer/external/family"), nil,
		"processes that end together, whatever they do"},
	{list("optimizer/trainer/external"), list("optimizer optimizer/trainer optimizer/trainer/external/family tensor tensor/safetensors"),
		"a trainer in another process learns alone as well; what it trains is named values"},

	{list("optimizer/trainer/external/standin"), list("optimizer/trainer/external"),
		"it speaks the protocol from the other side, and trains nothing"},

	{list("gossip/wire"), nil,
		"a message is bytes; who sends it and why is decided above"},
	{list("gossip/hello"), list("gossip/wire"),
		"the handshake is a pure function of two records"},
	{list("gossip/member"), list("gossip/wire gossip/hello"),
		"who may take part follows from signatures; what they do there is decided elsewhere"},
	{list("gossip/effect"), list("gossip/wire gossip/member"),
		"what machines ask for and when: it reaches none of them"},
	{list("gossip/peers"), list("gossip/effect gossip/wire gossip/hello gossip/member"),
		"who is there, known and live follows from records and heartbeats: payloads, snapshots and repair are not its business"},
	{list("gossip/limit"), list("gossip/effect gossip/peers gossip/member gossip/wire"),
		"what passes on follows from counts, times and invites: it neither stores nor asks"},
	{list("gossip/headers"), list("gossip/effect gossip/limit gossip/peers gossip/wire"),
		"what a header is follows from those that were met: its payload is fetched and served elsewhere"},
	{list("gossip/fetch"), list("gossip/effect gossip/peers gossip/wire"),
		"which payloads are wanted is said from outside: rounds, repair and snapshots are not its business"},
	{list("gossip/serve"), list("gossip/effect gossip/fetch gossip/headers gossip/limit gossip/peers gossip/wire"),
		"others ask, and this node gives what it has: what it asks of them is not its business"},
	{list("gossip"), list("gossip/effect gossip/fetch gossip/headers gossip/limit gossip/peers gossip/serve gossip/wire gossip/hello gossip/member"),
		"gossip spreads opaque items (id, header, bytes) and knows no tensors"},
	{list("gossip/p2p/bulk"), list("gossip/wire"),
		"long responses are paced by what their streams show: whose streams they are is not its business, so it has no libp2p"},
	{list("gossip/p2p/messagegate"), list("gossip/effect gossip/limit gossip/member gossip/wire"),
		"which messages go further follows from what they say and who was admitted: what brings them is not its business"},
	{list("gossip/p2p/guard"), nil,
		"what one key or one address may take is counts and times: who a peer is and what it says is not its business"},
	{list("gossip/p2p/address"), list("gossip/wire"),
		"names of peers and addresses are text to who writes links: none of them has a host"},
	{list("gossip/p2p/traffic"), list("gossip/p2p/bulk"),
		"bytes are counted where libp2p tells of them, and taken off the caps that bulk waits for"},
	{list("gossip/p2p"), list("gossip gossip/limit gossip/member gossip/wire gossip/hello gossip/p2p/address gossip/p2p/bulk gossip/p2p/guard gossip/p2p/messagegate gossip/p2p/traffic"),
		"p2p moves bytes; what they mean is decided in the cores. That a message gate keeps out whom it should is shown with hosts, by tests"},

	{list("node/core"), list("gossip gossip/wire gossip/hello gossip/member optimizer/outer optimizer/rounds tensor/codec optimizer/outer/outertest"),
		"the node and the simulator share this core, so it has neither network nor disk nor model"},
	{list("node/replica"), list("gossip gossip/member gossip/wire node/core optimizer/outer optimizer/rounds optimizer/outer/outertest"),
		"a replica is a node without goroutines, clock, disk or network: what it lacks stands behind ports"},
	{list("node/trace"), list("gossip gossip/wire node/core node/replica optimizer/outer optimizer/rounds"),
		"a trace is told by what passes through a replica's ports, in a node as in the simulator"},
	{list("node/files"), nil,
		"what systems do with files, whatever is in them"},
	{list("node/store/pages"), nil,
		"an index that cannot be trusted is read as bytes: what they mean is not its business"},
	{list("node/store"), list("gossip/wire node/files node/store/pages"),
		"the disk keeps headers and bytes, and decides nothing"},
	{list("node/authors"), list("gossip/member gossip/wire node/core node/store optimizer/outer"),
		"who made how much follows from the records of a folder and from folds; who shows it is not its business"},
	{list("node/mirror"), list("gossip gossip/wire"),
		"a mirror is asked for what gossip wants and does not get; what it gives is checked and kept by others"},
	{list("node/holders"), list("gossip/wire"),
		"who has a delta follows from ids of messages, whatever is in them"},
	{list("node/content"), list("gossip/wire node/files"),
		"a content store keeps bytes that a digest names, and does not know what they are of"},
	{list("node/status"), list("node/files"),
		"a view of a run needs the snapshot, not the code that made it"},
	{list("node/metrics"), list("node/status"),
		"metrics are numbers of statuses, under other names"},
	{list("node/entry"), list("gossip/wire node/genesis tensor/codec"),
		"what a newcomer fetches is named by digests, so whoever answers may give it: which host reaches whom is not its business"},
	{list("node/data"), list("gossip gossip/wire node/content node/genesis optimizer/outer optimizer/trainer optimizer/trainer/corpus/shards optimizer/trainer/external tensor/token"),
		"which shards are needed follows from the run and the next step, and batches from what is here: who is asked for the rest is its node's business"},
	{list("node/ledger"), list("gossip/member gossip/wire node/authors node/core node/inspect node/replica node/store optimizer/outer"),
		"what a replica keeps becomes records here; when it keeps what is decided there"},
	{list("node/web"), list("node/status"),
		"a page shows what statuses say; who made them, and whether there is one node or many, is not its business"},
	{list("node/clock"), nil,
		"how long a process was awake follows from two clocks, whatever it does meanwhile"},
	{list("node/mailbox"), nil,
		"a queue does not know what is in it"},
	{list("node/training"), list("node/clock node/mailbox node/status optimizer optimizer/outer optimizer/outer/outertest optimizer/trainer optimizer/trainer/external tensor"),
		"the thread that steps is told when it may, and tells what it did: peers, rounds and folders are its node's business"},
	{list("node/limits"), nil,
		"what a node may cost follows from times and counts"},
	{list("node/allowance"), list("node/limits node/status"),
		"why a node has to pause follows from its owner's limits and from what was counted; who counts and who pauses is the node's business"},
	{list("node/show"), list("gossip gossip/hello gossip/wire node/authors node/core node/genesis node/replica node/status optimizer/outer optimizer/rounds"),
		"what a node shows follows from values and from views that change nothing: it has neither the node nor its network, disk or trainer"},
	{list("node/genesis"), list("gossip/member gossip/wire node/files optimizer optimizer/outer optimizer/outer/tune optimizer/trainer optimizer/trainer/corpus/shards tensor tensor/codec tensor/llama tensor/safetensors"),
		"the document that a run's nodes share follows from what people choose, and from what was measured of the outer step: it knows no peers and no folders"},
	{list("node/joinlink"), list("gossip gossip/member gossip/p2p/address gossip/wire"),
		"a join link is a RunID, addresses and an invite; what the run is stands in its genesis"},
	{list("node/relay"), list("gossip gossip/hello gossip/member gossip/p2p gossip/p2p/messagegate gossip/wire node/joinlink tensor/codec"),
		"a relay moves bytes between nodes and knows who is there: it has neither rounds nor a model"},
	{list("node/preflight"), list("gossip/hello gossip/member gossip/p2p gossip/p2p/address gossip/wire node/genesis node/inspect node/joinlink tensor/codec"),
		"it tries whether a link leads into its run, as a stranger does, before there is a node"},
	{list("node/hardware"), list("node/genesis tensor"),
		"what a node needs follows from the run and its arithmetic, what there is from the machine"},
	{list("node/inspect/ledgertest"), list("gossip/member gossip/wire node/core node/genesis node/store optimizer optimizer/outer tensor/codec tensor/llama"),
		"a folder for tests is written as a node writes it, without a node"},
	{list("node/inspect"), list("gossip/member gossip/wire node/core node/files node/genesis node/hardware node/joinlink node/status node/store optimizer/outer optimizer/trainer optimizer/trainer/corpus/shards optimizer/trainer/external tensor tensor/codec tensor/token"),
		"it reads folders and asks nodes over their control sockets: never node, which runs one"},
	{list("node"), list("node/... gossip/... optimizer/... tensor/..."),
		"the node is where gossip, the outer step and the trainer meet; nothing above it may reach down into it"},

	{list("testnet/fault"), nil,
		"the language of faults is words and times: its executors say what they can execute"},
	{list("testnet/natlab"), list("node/genesis node/status node/store node/joinlink gossip/hello gossip/p2p gossip/p2p/address gossip/wire optimizer/trainer/corpus/shards"),
		"it makes networks and starts programs in them; what a node says of itself it reads from outside. " +
			"A crowd of peers that only send heartbeats and ask for bytes is too many for as many programs: its tests have hosts of p2p for that. " +
			"Which shards a joiner reads follows from its key, so a test that wants joiners apart chooses their keys"},
	{list("testnet/shaping"), list("node/limits"),
		"a link is words and numbers, and a function on connections, whoever has these; rates are written as limits has them"},
	{list("testnet/nodelink"), list("testnet/fault testnet/shaping"),
		"nodes as faults name them, links as shaping has them"},
	{list("testnet/controls"), list("node/status gossip/wire testnet/shaping"),
		"what is asked of a process and how: what a process does about it is its own"},
	{list("testnet/labnode"), list("node node/status gossip/p2p optimizer/trainer testnet/controls testnet/shaping"),
		"a node as any other, with what its hooks let in"},
	{list("testnet/sim/memory"), list("gossip/member gossip/wire node/core node/replica optimizer/outer"),
		"a ledger in memory is a port of the replica and nothing else"},
	{list("testnet/sim"), list("testnet/fault testnet/nodelink gossip gossip/limit gossip/member gossip/wire gossip/hello testnet/shaping node/core node/replica node/trace testnet/sim/memory " +
		"optimizer optimizer/outer optimizer/outer/oracle optimizer/rounds optimizer/trainer optimizer/trainer/corpus tensor tensor/codec tensor/llama"),
		"the simulator runs the real cores in virtual time: never gossip/p2p, never node"},
	{list("testnet/sim/exhaust"), list("gossip gossip/wire gossip/hello node/core node/replica testnet/sim/memory optimizer/outer optimizer/rounds tensor tensor/codec"),
		"the search runs the real cores, with nothing around them that could decide"},
	{list("testnet/sim/mutants/..."), list("testnet/sim testnet/sim/exhaust optimizer/outer tensor/codec"),
		"planted bugs are found by what is there for all others"},
	{list("testnet/scenario"), list("testnet/fault testnet/sim node/core optimizer/outer tensor/codec"),
		"a script is a world of the simulator, told in words: it has no machinery of its own"},
	{list("testnet/baseline"), list("node node/genesis node/hardware node/joinlink node/status node/store node/training gossip/hello gossip/p2p gossip/p2p/address gossip/wire " +
		"optimizer/trainer optimizer/trainer/corpus tensor testnet/baseline/lockstep testnet/controls testnet/shaping"),
		"a baseline trains as a node does over the same network, and has none of the protocol's logic: " +
			"neither gossip nor node/core nor the outer step"},
	{list("testnet/baseline/lockstep"), list("optimizer optimizer/trainer tensor"),
		"what baselines compute knows nothing of what carries their vectors: processes, or a sweep's virtual time"},
	{list("testnet"), list("testnet/... node/... gossip/... optimizer/... tensor/..."),
		"a world is built from nodes and measures them; nobody imports cmd"},

	{list("cmd/atoll/internal/cli"), list("node/status"),
		"what commands share knows none of them, and nothing of runs. Of node/status it has how times are written"},
	{list("cmd/atoll/internal/data"), list("cmd/atoll/internal/cli node/files node/status optimizer/trainer/corpus/build optimizer/trainer/corpus/documents optimizer/trainer/corpus/shards tensor/token"),
		"tokenizers and corpora are made of files: there is no run yet. Of node/status it has how sizes are written"},
	{list("cmd/atoll/internal/settings"), list("cmd/atoll/internal/cli node node/status node/store"),
		"what a folder keeps is flags by name: what they mean is said where they are, and what a node makes of them there"},
	{list("cmd/atoll/internal/statustext"), list("cmd/atoll/internal/cli gossip/wire node/status"),
		"what people read follows from what nodes say of themselves: it asks none"},
	{list("cmd/atoll/internal/top"), list("node/status"),
		"the full screen draws what nodes say of themselves"},
	{list("cmd/..."), list("cmd/atoll/internal/... testnet/... node/... gossip/... optimizer/... tensor/..."),
		"commands read flags, call and print"},
}

// modules says which packages may import which foreign modules. The first rule
// that matches an import is its rule.
var modules = []rule{
	{list("gossip/p2p gossip/p2p/guard gossip/p2p/traffic"), list("github.com/libp2p/..."),
		"gossip/p2p is the only importer of libp2p, with what it has libp2p ask and tell: everything else talks of raw keys, addresses and bytes"},
	{list("gossip gossip/wire gossip/hello gossip/p2p gossip/p2p/address gossip/p2p/guard"), list("github.com/multiformats/go-multiaddr/..."),
		"addresses are read in gossip and are text everywhere else"},
	{list("gossip/p2p"), list("github.com/libp2p/go-reuseport"),
		"a socket that dials from a port on which this node listens"},
	{list("gossip/p2p"), list("github.com/ipfs/go-cid"),
		"the DHT of libp2p names what it looks for in this form"},
	{list("gossip/p2p"), list("github.com/multiformats/go-multistream"),
		"a connection beside the swarm's negotiates its one stream by itself"},
	{list("gossip gossip/wire gossip/hello node"), list("github.com/fxamacker/cbor/v2"),
		"CBOR is the encoding of messages, records and the genesis, and of nothing else"},
	{list("optimizer/trainer/corpus/documents"), list("github.com/go-json-experiment/json/jsontext"),
		"lines of JSON are read by a library that reads each once"},
	{list("gossip/wire optimizer/outer optimizer/trainer/corpus/shards"), list("github.com/zeebo/blake3"),
		"digests are made where items and shards are named and snapshots folded"},
	{list("gossip/wire"), list("lukechampine.com/blake3/..."),
		"parts of a blob are checked against its digest by the tree of its hashes, which zeebo/blake3 does not show"},
	{list("gossip/p2p gossip/p2p/bulk gossip/p2p/guard"), list("golang.org/x/time/rate"),
		"only streams have a rate, in bytes or in themselves"},
	{list("tensor/codec optimizer/trainer/corpus/documents optimizer/trainer/corpus"), list("github.com/klauspost/compress/..."),
		"the codec is the one place that compresses; corpora come packed, and a test of corpus has them so"},
	{list("optimizer/trainer/corpus/documents optimizer/trainer/corpus"), list("github.com/parquet-go/parquet-go/... golang.org/x/text/encoding/... golang.org/x/text/transform"),
		"corpora come as tables, and in old encodings; a test of corpus has them so"},
	{list("tensor"), list("github.com/klauspost/cpuid/v2"),
		"the kernels are chosen by what the CPU can do"},
	{list("tensor/token"), list("golang.org/x/text/unicode/norm"),
		"the data of Unicode's normal forms has one reader"},
	{list("tensor/gen"), list("github.com/mmcloughlin/avo/..."),
		"assembly is generated ahead of time and committed; what runs does not need the generator"},
	{list("node/store node/store/pages"), list("go.etcd.io/bbolt/..."),
		"the index has one owner. That its pages are checked as bbolt writes them is shown with bbolt, by tests"},
	{list("node/metrics"), list("github.com/prometheus/client_golang/..."),
		"Prometheus' own library knows how Prometheus reads"},
	{list("node/holders"), list("github.com/hashicorp/golang-lru/v2/simplelru"),
		"what recent messages announce is forgotten, the least used first"},
	{list("node/web cmd/atoll/internal/cli"), list("rsc.io/qr"),
		"the page and the terminal show a link to a camera"},
	{list("node/web"), list("golang.org/x/net/netutil"),
		"the page alone listens to browsers, and bounds how many"},
	{list("cmd/..."), list("github.com/alecthomas/kong github.com/jotaen/kong-completion github.com/pelletier/go-toml/v2/..."),
		"only commands know of flags and configuration files"},
	{list("cmd/atoll/internal/top"), list("charm.land/bubbletea/v2 charm.land/lipgloss/v2"),
		"only the full screen draws one"},
	{list("cmd/atoll/internal/top cmd/atoll/internal/cli"), list("github.com/charmbracelet/x/ansi"),
		"tables know how wide a character is: names are in any script"},
	{list("cmd/..."), list("golang.org/x/term"),
		"only commands ask how large a terminal is"},
	{list("node/files node/store node/hardware optimizer/trainer/external/family cmd/..."), list("golang.org/x/sys/windows"),
		"calls of Windows that the standard library has not: locks, jobs, memory and consoles"},
	{list("node/hardware"), list("github.com/KimMachineGun/automemlimit/memlimit"),
		"limits of containers, by both versions of control groups and wherever they are mounted"},
	{nil, list("pgregory.net/rapid/... github.com/rogpeppe/go-internal/... github.com/marcopolo/simnet/... github.com/makiuchi-d/gozxing/..."),
		"it is for tests only"},
	{list("optimizer/trainer/external"), list("golang.org/x/sys/unix"),
		"a file in memory for a learner; otherwise only a test needs it, to make a terminal"},
	{nil, list("C"),
		"the program is pure Go: it builds with CGO_ENABLED=0"},
	{nil, list("..."),
		"every dependency is a decision: it stands in this table"},
}

// exceptions are imports that the rules forbid and that were decided one by one.
var exceptions = []rule{
	{list("node/hardware"), list("github.com/klauspost/cpuid/v2"),
		"names the CPU in the capability record"},
}

// pure are the packages whose output depends on their arguments alone, so that
// a simulator can run them and two machines agree to the bit.
var pure = list("tensor/nn tensor/llama optimizer optimizer/outer optimizer/outer/tune optimizer/rounds gossip gossip/effect gossip/wire gossip/hello node/core")

// impure are the packages of the standard library that bring in what is not an
// argument.
var impure = []rule{
	{list("node/replica"), list("time context os/... net/... io/ioutil syscall runtime/... math/rand/... crypto/rand log/..."),
		"when work runs, where it is kept and how it is sent are its ports' to say"},
	{pure, list("time context sync/..."),
		"time is an argument, and one goroutine owns the state"},
	{pure, list("math/rand/... crypto/rand"),
		"randomness is an argument"},
	{pure, list("os/... net net/http/... net/rpc/... net/url io/ioutil syscall runtime/..."), // net/netip is values
		"it takes events and returns effects; others do the input and output"},
	{append(list("tensor/... optimizer/trainer/... node/store node/status"), pure...), list("log/..."),
		"services log; everything else returns errors"},
}

// Every test may import testPackages, and so may other code where a rule says so: the
// protocol's text, whose clauses are about many packages, the join link, whose clause is
// among the clauses of the genesis, folders made by hand,
// the ledger in memory, and links that are narrow and far.
var testPackages = list("gossip/wire/spectest node/joinlink node/inspect/ledgertest testnet/sim/memory testnet/shaping")

// testModules may be imported by every test.
var testModules = list("pgregory.net/rapid/... github.com/rogpeppe/go-internal/... github.com/marcopolo/simnet/... github.com/makiuchi-d/gozxing/... golang.org/x/sys/unix")

func list(words string) []string { return strings.Fields(words) }

func TestLayering(t *testing.T) {
	for _, f := range parseTree(t, parser.ImportsOnly) {
		for _, spec := range f.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatalf("%s: import %s: %v", f.path, spec.Path.Value, err)
			}
			if broken := brokenRule(f.pkg(), imported, f.test()); broken != nil {
				t.Errorf("%s: package %s imports %s.\n  rule: %s\n  reason: %s",
					f.path, f.pkg(), imported, broken, broken.reason)
			}
		}
	}
}

// TestLayeringCatches keeps the rules from becoming empty: each line breaks one.
func TestLayeringCatches(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		test, allowed bool
	}{
		{"tensor", "atoll/optimizer", false, false},
		{"optimizer/outer", "atoll/tensor/llama", false, false},
		{"optimizer/outer", "atoll/optimizer/rounds", false, false},
		{"optimizer/outer", "atoll/optimizer/rounds", true, false},
		{"optimizer/rounds", "atoll/gossip", false, false},
		{"optimizer/rounds", "time", false, false},
		{"gossip", "atoll/tensor", false, false},
		{"node", "github.com/libp2p/go-libp2p/core/peer", false, false},
		{"node/core", "atoll/gossip/p2p", false, false},
		{"testnet/sim", "atoll/node", false, false},
		{"testnet/sim", "atoll/node/store", false, false},
		{"node/genesis", "atoll/gossip/p2p", false, false},
		{"gossip/p2p/address", "github.com/libp2p/go-libp2p/core/peer", false, false},
		{"node/inspect", "atoll/node", false, false},
		{"testnet/sim", "atoll/gossip/p2p", false, false},
		{"gossip/p2p", "atoll/testnet/shaping", false, false},
		{"node", "atoll/testnet/controls", false, false},
		{"testnet/scenario", "atoll/gossip", false, false},
		{"testnet/baseline", "atoll/optimizer/outer", false, false},
		{"testnet/baseline", "atoll/node/core", false, false},
		{"testnet", "atoll/cmd/atoll", false, false},
		{"testnet", "atoll/testnet/lab/trials", true, false},
		{"cmd/atoll", "atoll/testnet/lab/bench", false, false},
		{"testnet/lab/sweep", "atoll/node", false, false},
		{"testnet/lab/fleet", "atoll/tensor", false, false},
		{"testnet/lab/new", "atoll/tensor", false, false},
		{"testnet/lab/headline", "github.com/libp2p/go-libp2p/core/peer", false, false},
		{"node/status", "pgregory.net/rapid", false, false},
		{"gossip", "time", false, false},
		{"node/store", "log/slog", false, false},
		{"tensor/codec", "golang.org/x/sys/cpu", false, false},
		{"cmd/atoll", "C", false, false},
		{"somewhere/new", "atoll/tensor", false, false},
		{"node/core", "atoll/tensor", false, false},
		{"node/core", "atoll/node/store", true, false},
		{"tensor/codec", "atoll/gossip/wire/spectest", false, false},

		{"testnet/sim", "atoll/node/core", false, true},
		{"node/core", "atoll/tensor", true, true},
		{"tensor/codec", "atoll/gossip/wire/spectest", true, true},
		{"node/core", "atoll/optimizer/outer/oracle", true, false},
		{"node/status", "pgregory.net/rapid", true, true},
		{"gossip", "time", true, true},
		{"node/hardware", "github.com/klauspost/cpuid/v2", false, true},
		{"cmd/atoll", "atoll/testnet", false, true},
		{"testnet/lab/headline", "atoll/testnet", false, true},
		{"testnet/lab/outsider", "github.com/libp2p/go-libp2p/core/peer", false, true},
		{"testnet", "atoll/testnet", true, true},
	} {
		broken := brokenRule(c.pkg, c.imported, c.test)
		if allowed := broken == nil; allowed != c.allowed {
			t.Errorf("package %s imports %s (test: %v): allowed is %v, want %v", c.pkg, c.imported, c.test, allowed, c.allowed)
		}
	}
}

// TestLayeringNamesWhatIsThere: a rule is about packages that exist and imports that
// somebody has. What is about to be built brings its rule with it.
func TestLayeringNamesWhatIsThere(t *testing.T) {
	own, imported := map[string]bool{}, map[string]bool{}
	for _, f := range parseTree(t, parser.ImportsOnly) {
		own[f.pkg()] = true
		for _, spec := range f.syntax.Imports {
			imported[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	wantThere := func(there map[string]bool, patterns []string) {
		for _, p := range patterns {
			if p != "C" && !matchesOne(there, p) {
				t.Errorf("a rule names %s, which is not there: drop it", p)
			}
		}
	}
	for _, r := range slices.Concat(layers, labLayers) {
		wantThere(own, slices.Concat(r.packages, r.imports))
	}
	for _, r := range slices.Concat(modules, exceptions, labExceptions) {
		wantThere(own, r.packages)
		wantThere(imported, r.imports)
	}
	for _, r := range impure {
		wantThere(own, r.packages)
	}
	wantThere(own, slices.Concat(pure, testPackages))
	wantThere(imported, testModules)
}

func matchesOne(names map[string]bool, pattern string) bool {
	for name := range names {
		if matches(pattern, name) {
			return true
		}
	}
	return false
}

// brokenRule returns the rule that an import breaks, or nil. Tests may use more:
// the test modules, the packages below the packages of their rule, and clocks,
// files and random numbers.
func brokenRule(pkg, imported string, test bool) *rule {
	own, isOwn := strings.CutPrefix(imported, modulePath+"/")
	switch {
	case isOwn:
		return brokenLayer(pkg, own, test)
	case allows(exceptions, pkg, imported), allows(labExceptions, pkg, imported), test && matchesAny(testModules, imported):
		return nil
	case isStandard(imported) && test:
		return nil
	case isStandard(imported):
		return brokenPurity(pkg, imported)
	}
	return brokenModule(pkg, imported)
}

func brokenLayer(pkg, imported string, test bool) *rule {
	r := layerOf(pkg)
	switch {
	case isLab(imported) && !isLab(pkg):
		return &rule{packages: []string{lab}, imports: []string{lab}, reason: "the laboratory is a module of its own, which nothing needs that people are given"}
	case test && matchesAny(testPackages, imported):
		return nil
	case r == nil:
		return &rule{packages: []string{pkg}, reason: "a package without a rule may import nothing of this module: give it one in layers"}
	case matchesAny(r.imports, imported), test && pkg == imported, test && below(*r, imported):
		return nil
	}
	return r
}

// layerOf returns the rule of a package, or nil.
func layerOf(pkg string) *rule {
	of := layers
	if isLab(pkg) {
		of = labLayers
	}
	i := slices.IndexFunc(of, func(r rule) bool { return matchesAny(r.packages, pkg) })
	if i < 0 {
		return nil
	}
	return &of[i]
}

// below tells whether a package is among the imports of a rule's imports, or of
// theirs.
func below(r rule, pkg string) bool {
	return slices.ContainsFunc(r.imports, func(imported string) bool {
		next := layerOf(imported)
		return next != nil && next.packages[0] != r.packages[0] &&
			(matchesAny(next.imports, pkg) || below(*next, pkg))
	})
}

func brokenModule(pkg, imported string) *rule {
	i := slices.IndexFunc(modules, func(r rule) bool { return matchesAny(r.imports, imported) })
	if matchesAny(modules[i].packages, pkg) {
		return nil
	}
	return &modules[i]
}

func brokenPurity(pkg, imported string) *rule {
	for _, r := range impure {
		if matchesAny(r.packages, pkg) && matchesAny(r.imports, imported) {
			return &rule{imports: r.imports, reason: r.reason}
		}
	}
	return nil
}

// String is what the rule allows.
func (r rule) String() string {
	who := cmp.Or(strings.Join(r.packages, ", "), "no such package")
	what := cmp.Or(strings.Join(r.imports, ", "), "nothing")
	return who + " may import " + what
}

func allows(rules []rule, pkg, imported string) bool {
	return slices.ContainsFunc(rules, func(r rule) bool {
		return matchesAny(r.packages, pkg) && matchesAny(r.imports, imported)
	})
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// matches tells whether a name is the pattern or, if that ends in /..., below it.
func matches(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	base, tree := strings.CutSuffix(pattern, "/...")
	return name == base || tree && strings.HasPrefix(name, base+"/")
}

// isStandard tells a package of the standard library: its first element has no
// dot. "C" is none: it stands for cgo.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return imported != "C" && !strings.Contains(first, ".")
}

// sourceFile is a Go file of this module, or of the laboratory.
type sourceFile struct {
	path   string // relative to the module, with slashes
	syntax *ast.File
}

func (f sourceFile) pkg() string  { return path.Dir(f.path) }
func (f sourceFile) test() bool   { return strings.HasSuffix(f.path, "_test.go") }
func (f sourceFile) isMade() bool { return ast.IsGenerated(f.syntax) }

// parseTree parses every Go file, whatever system it is for.
func parseTree(t *testing.T, mode parser.Mode) []sourceFile {
	t.Helper()
	var files []sourceFile
	fset := token.NewFileSet()
	for _, name := range sources(t) {
		syntax, err := parser.ParseFile(fset, filepath.Join(root, filepath.FromSlash(name)), nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sourceFile{name, syntax})
	}
	if len(files) < 50 {
		t.Fatalf("found %d Go files under %s: this test looks in the wrong place", len(files), root)
	}
	return files
}
