package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wrongInput is a command line that cannot be meant, or that meets something damaged. It runs in the folder of wrongPlace.
type wrongInput struct {
	line string
	env  string // a variable of the environment that is set
	code int    // exit code
	says string // what stderr has: the thing, the value and the remedy, with | between
	then string // the remedy, where it is a command line
	next string // what that says in turn; "" is that it succeeds
}

var wrongInputs = []wrongInput{
	{line: "join --version", code: 2, says: "unknown flag --version"},
	{line: "help jion", code: 2, says: "unexpected argument jion, did you mean \"join\"?"},
	{line: "vresion", code: 2, says: "unexpected argument vresion, did you mean \"version\"?"},
	{line: "version extra", code: 2, says: "unexpected argument extra"},
	{line: "version --colour", code: 2, says: "unknown flag --colour"},
	{line: "new --codec int3", code: 2, says: "--codec must be one of"},
	{line: "new --profile moon", code: 2, says: "--profile must be one of"},
	{line: "new --tokens many", code: 2, says: "is not a whole number"},
	{line: "new --tokens -5", code: 2, says: "\"-5\""},
	{line: "join absent --batch -1", code: 2, says: "--batch is -1"},
	{line: "join absent --up -5mbit", code: 2, says: "\"-5mbit\""},
	{line: "key -5", code: 2, says: "unknown flag -5"},
	{line: "new --seed=-1", code: 2, says: "--seed"},
	{line: "join http://example.org", code: 2, says: `there is no folder "http://example.org"; a join link begins with "atoll:"`},
	{line: "invite --uses 0", code: 2, says: "--uses is 0; use more, or leave it out for the default"},
	{line: "new --h 0", code: 2, says: "--h is 0"},
	{line: "join absent --threads 0", code: 2, says: "--threads is 0"},
	{line: "testnet --nodes 0", code: 2, says: "--nodes"},
	{line: "testnet --pace 0s", code: 2, says: "--pace is 0; use more"},
	{line: "testnet --timeout 0s", code: 2, says: "--timeout is 0; use more"},
	{line: "join absent --data-disk 0GB", code: 2, says: "--data-disk is 0; use more, or `atoll set --reset data-disk`"},
	{line: "status absent --dir x", code: 2, says: "a folder is typed without --dir"},
	{line: "status text.txt", code: 2, says: `"text.txt" is a file: type a folder`},
	{line: "new text.txt", code: 2, says: `"text.txt" is a file: type a folder`},
	{line: "join absent atoll:12", code: 2, says: `"atoll:12" is cut or mistyped`},
	{line: "join atoll:12 atoll:13", code: 2, says: "\"atoll:12\" is cut or mistyped"},
	{line: "join absent other", code: 2, says: `"absent" and "other" are two folders: a join link begins with "atoll:"`},
	{line: "join atoll:12", code: 2, says: `"atoll:12" is cut or mistyped`},
	{line: "join atoll:" + strings.Repeat("ab", 32) + " --genesis x", code: 2, says: "pass either a join link or --genesis, not both"},
	{line: "testnet --web 7070", code: 2, says: `--web: page at "7070": it is no address with a port; use 127.0.0.1:7070`},
	{line: "join atoll:" + strings.Repeat("ab", 32) + " absent --web :7070", code: 2, says: `it names no host; use 127.0.0.1:7070`},
	{line: "join absent --threads=-1", code: 2, says: "--threads is -1"},
	{line: "join absent --batch=-1", code: 2, says: "--batch is -1"},
	{line: "join absent --batch=5000", code: 2, says: "--batch is 5000"},
	{line: "join absent --pace=-1s", code: 2, says: "--pace is -1s"},
	{line: "join absent --eval-bytes=-1", code: 2, says: "--eval-bytes is -1"},
	{line: "join absent --peer localhost:1", code: 2, says: `--peer "localhost:1" is not an address`},
	{line: "join absent --up 5", code: 2, says: `"5" is not the rate of a link`},
	{line: "join absent --keep 10", code: 2, says: `--keep: "10" has no unit; write it like 10GB or 500MB`},
	{line: "join absent --keep 10XB", code: 2, says: `--keep: "10XB" is not a size`},
	{line: "join absent --data-disk 20", code: 2, says: `"20" has no unit`},
	{line: "join absent --up 20MB", code: 2, says: `bytes: write bits, such as 160mbit`},
	{line: "new --tokens 20X", code: 2, says: `write it like 20M, 3e6 or 3000000`},
	{line: "join absent --quota 300GB", code: 2, says: `"300GB" is not a quota; write it like 300GB/month`},
	{line: "join absent --quota 300GB/year", code: 2, says: `use month or day`},
	{line: "join absent --hours 22", code: 2, says: `--hours: "22" are no hours; write them like 22-07`},
	{line: "join absent --battery full", code: 2, says: "--battery must be one of"},
	{line: "pause .", code: 1, says: "no node is running"},
	{line: "resume .", code: 1, says: "no node is running"},
	{line: "testnet-node absent --shape speed=1", code: 2, says: "--shape: link"},
	{line: "sim --seeds=-1", code: 2, says: "--seeds is -1"},
	{line: "sim --nodes=-1", code: 2, says: "--nodes is -1"},
	{line: "sim --nodes 3 --rounds 0", code: 2, says: "--rounds is 0; use 1 or more\nRun `atoll sim --help`"},
	{line: "sim --faults x", code: 2, says: "--faults needs --nodes"},
	{line: "sim --link rate=1mbit", code: 2, says: "--link needs --nodes"},
	{line: "sim --nodes 2 --link speed=1mbit", code: 2, says: "--link: link \"speed=1mbit\": \"speed=1mbit\" is no trait of a link"},
	{line: "sim --nodes 2 --link 2:rate=1mbit", code: 2, says: "--link: 2:rate=1mbit: there is no node 2; use 0 to 1"},
	{line: "sim --nodes 2 --link rate=1mbit --payload much", code: 2, says: "--payload \"much\": write an amount such as 100kB"},
	{line: "sim --script absent", code: 1, says: "read the script: open absent"},
	{line: "sim --scenario absent", code: 1, says: "read the scenario: open absent"},
	{line: "testnet --codec int3", code: 2, says: "--codec must be one of"},
	{line: "testnet --baseline ring", code: 2, says: "--baseline must be one of"},
	{line: "testnet --link 100mbit", code: 2, says: `--link: link "100mbit"`},
	{line: "testnet --link rate=1mbit,delay=4ms --link 4:up=1mbit", code: 2, says: "--link names node 4: there are only nodes 0 to 3"},
	{line: "testnet --link 3:up=1mbit,jitter=1ms", code: 2, says: "jitter is 1ms: use at most the delay, 0s"},
	{line: "testnet --link rate=1mbit --chaos link_0_delay=1h_@60s..120s", code: 2, says: "delay is 1h0m0s: use 0s to 10s"},
	{line: "testnet --trace --baseline dp", code: 2, says: "--trace is of deltas, which dp has none of"},
	{line: "sim --trace-out x --seeds 2", code: 2, says: "--trace-out is of one world"},
	{line: "trace absent", code: 1, says: "read the trace: stat absent"},
	{line: "baseline --kind dp", code: 2, says: "missing flags"},
	{line: "baseline --kind dp --genesis x x --coordinator x --shape x", code: 2, says: "--shape: link"},
	{line: "baseline --kind dp --genesis absent x --coordinator x", code: 1, says: "genesis: open absent"},
	{line: "new --model base", code: 2, says: "that of --model has 4096 tokens, and a text has 256, its bytes: make a corpus"},
	{line: "new --from absent --model small --tokens 9", code: 2, says: "--from and --model small are two models"},
	{line: "new --tokens 0", code: 2, says: "--tokens is 0"},
	{line: "new --batch=-1", code: 2, says: "--batch is -1"},
	{line: "new --h=-1", code: 2, says: "--h is -1"},
	{line: "new --lr=11", code: 2, says: "--lr is 11"},
	{line: "new --lr=NaN", code: 2, says: "--lr is NaN"},
	{line: "new --fragments=-1", code: 2, says: "--fragments is -1"},
	{line: "new --learners-per-round=2", code: 2, says: "--learners-per-round is 2; use 3 to 4096"},
	{line: "new --learners-per-round=4097", code: 2, says: "--learners-per-round is 4097; use 3 to 4096"},
	{line: "new --fragments=39", code: 2, says: "--fragments is 39; the model has only 38 tensors"},
	{line: "testnet --tokens 0", code: 2, says: "--tokens is 0"},
	{line: "testnet --h=-1", code: 2, says: "--h is -1"},
	{line: "testnet --batch=-1", code: 2, says: "--batch is -1"},
	{line: "testnet --chaos explode", code: 2, says: "use one of join, leave, kill, start, pause, resume"},
	{line: "join --genesis absent.genesis", code: 1, says: "make one with `atoll new`"},
	{line: "join --profile moon", code: 2, says: "--profile must be one of"},
	{line: "join --log-level loud", code: 2, says: "--log-level must be one of"},
	{line: "join --pace fast", code: 2, says: "--pace"},
	{line: "generate --length=0", code: 2, says: "--length is 0; use 1 or more"},
	{line: "generate --temperature=-1", code: 2, says: "--temperature is -1"},
	{line: "generate --top-k=-1", code: 2, says: "--top-k is -1"},
	{line: "generate --top-p=2", code: 2, says: "--top-p is 2"},
	{line: "new --model huge", code: 2, says: `model "huge": use tiny, small, base`},
	{line: "testnet --model huge", code: 2, says: `model "huge": use tiny, small, base`},
	{line: "join absent --listen localhost:1", code: 2, says: "--listen: listen address \"localhost:1\""},
	{line: "leave --timeout=-1s", code: 2, says: "--timeout is -1s"},
	{line: "pause --timeout=0s", code: 2, says: "--timeout is 0s"},
	{line: "resume --timeout=-1s", code: 2, says: "--timeout is -1s"},
	{line: "data build --out x --held-out 2 y", code: 2, says: "--held-out is 2; use a share"},
	{line: "data mix --out x a b=1", code: 2, says: `"a" has no weight: write the folder and its weight`},
	{line: "data mix --out x a=1 b=-2", code: 2, says: `"-2" is no weight: use a number above 0`},
	{line: "data mix --out x a=NaN b=1", code: 2, says: `"NaN" is no weight`},
	{line: "data mix --out x a=1000000 b=0.000001", code: 2, says: "the weights are too far apart"},
	{line: "data mix --out x a=1", code: 1, says: "a mixture is of 2 to 16 corpora, and these are 1"},
	{line: "doctor --try --learner torchrun:0", code: 2, says: "data-parallel group are 1 to"},
	{line: "doctor --try", code: 2, says: "--try needs --learner CMD"},
	{line: "new --bandwidth 1kbit --step 1ms", code: 2, says: "--bandwidth: steps of 0.001 s are so short"},
	{line: "new --h=-1", code: 2, says: "--h is -1"},
	{line: "bench --seconds=-1", code: 2, says: "--seconds is -1"},
	{line: "bench --seconds=NaN", code: 2, says: "--seconds is NaN"},
	{line: "bench --threads=-1", code: 2, says: "--threads is -1"},
	{line: "bench --threads x", code: 2, says: "--threads"},
	{line: "bench --model absent.json", code: 1, says: "absent.json"},
	{line: "bench --model huge", code: 2, says: `model "huge": use tiny, small, base`},
	{line: "bench --model tiny --seconds 0 absent/folder", code: 1, says: "choose another folder"},
	{line: "bench a step", code: 2, says: "unexpected argument step"},
	{line: "sim goodput", code: 2, says: "unexpected argument goodput"},
	{line: "data paint", code: 2, says: "unexpected argument paint"},
	{line: "data biuld", code: 2, says: "unexpected argument biuld, did you mean \"build\"?"},
	{line: "tesnet", code: 2, says: "unexpected argument tesnet, did you mean \"testnet\"?"},
	{line: "--config absent.toml version", code: 2, says: "absent.toml"},
	{line: "join", code: 2, says: "atoll folders here, badcertificate, |type which, such as `atoll join badcertificate`"},
	// Links.
	{line: "join CUT x", code: 2, says: "CUTSHOWN|is cut or mistyped|copy it whole"},
	{line: "join LINKx x", code: 2, says: "is cut or mistyped|copy it whole"},
	{line: "join UPPER x", code: 2, says: "is cut or mistyped|copy it whole"},
	{line: "join http://LINK x", code: 2, says: "are two folders|begins with \"atoll:\"|without quotes"},
	{line: "join OTHER LINK x", code: 2, says: "of two runs|takes part in one run|folder of its own"},
	{line: "join LINK LINK LINK x", code: 2, says: "unexpected argument x|leave it out"},
	{line: "join OTHER run", code: 1, says: "run belongs to run|the link names run|use another folder"},
	{line: "join LINK text.txt", code: 2, says: "\"text.txt\" is a file|type a folder"},
	{line: "join LINK --genesis run/genesis", code: 2, says: "--genesis|not both"},
	{line: "relay x", code: 2, says: "which run?|Pass a join link"},
	{line: "relay", code: 2, says: "<link> is missing|type it"},
	{line: "relay x y", code: 2, says: "\"x\" and \"y\" are two folders"},
	{line: "relay LINK --listen 0.0.0.0:1", code: 2, says: "--listen|\"0.0.0.0:1\"|/ip4/0.0.0.0/tcp/4001"},
	{line: "relay LINK --as a/b", code: 2, says: "--as: \"a/b\"|use letters"},
	{line: "relay LINK --up 0", code: 2, says: "--up: \"0\"|write it like 20mbit"},
	{line: "doctor CUT", code: 2, says: "CUTSHOWN|copy it whole"},
	{line: "revoke atoll:12 run", code: 2, says: "\"atoll:12\"|copy it whole"},
	{line: "revoke OTHER run", code: 2, says: "the link is of run|this is run"},
	{line: "revoke BARE run", code: 2, says: "has no invite|nothing to revoke"},
	{line: "revoke LINK run", code: 1, says: "no node is running|atoll join run|tells the others"},
	{line: "revoke ffff run --owner text.txt", code: 1, says: "text.txt|chmod 600"},
	{line: "revoke ffff run --owner absent", code: 1, says: "owner's key absent|atoll new wrote"},
	{line: "revoke ffff run --owner other/owner", code: 1, says: "other/owner|not of an owner of run|atoll new wrote"},
	{line: "revoke ffff open", code: 1, says: "is open|nobody can revoke"},
	{line: "invite open", code: 1, says: "is open|without an invite"},
	{line: "invite run --for zz --guests", code: 2, says: "--for|--guests|leave one of the two out"},
	{line: "invite run --owner other/owner", code: 1, says: "other/owner|not of an owner|atoll new wrote"},
	// Times, numbers and units.
	{line: "invite run --expires 1", code: 2, says: "--expires: \"1\"|write it like 12h or 7d"},
	{line: "invite run --expires -1d", code: 2, says: "--expires: \"-1d\"|write it like 12h or 7d"},
	{line: "invite run --expires 0s", code: 2, says: "--expires: \"0s\"|write it like 12h or 7d"},
	{line: "invite run --uses -1", code: 2, says: "--uses: \"-1\"|from 0 to 4294967295"},
	{line: "invite run --uses 1.5", code: 2, says: "--uses: \"1.5\"|whole number"},
	{line: "invite run --uses 5000000000", code: 2, says: "--uses: \"5000000000\"|4294967295"},
	{line: "new n --expires 999999d", code: 2, says: "--expires: \"999999d\"|write it like 12h or 7d"},
	{line: "new n --tokens 1e30", code: 2, says: "--tokens: \"1e30\"|write it like 20M"},
	{line: "new n --batch 1000000000", code: 2, says: "--batch is 1000000000|use 1 to 4096"},
	{line: "new n --h 100000000", code: 2, says: "--h is 100000000|use 1 to"},
	{line: "new n --lr abc", code: 2, says: "--lr: \"abc\"|no number; write it like 0.5"},
	{line: "new n --lr inf", code: 2, says: "--lr is +Inf|between 0 and 10"},
	{line: "new n --seed abc", code: 2, says: "--seed: \"abc\"|whole number; write it like"},
	{line: "new n --learners -3", code: 2, says: "--learners is -3|use 1 to"},
	{line: "new n --bandwidth 5", code: 2, says: "--bandwidth: \"5\"|write it like 20mbit"},
	{line: "new n --step 5", code: 2, says: "--step: \"5\"|write it with a unit, like 500ms"},
	{line: "new n --bandwidth 1gbit --step -1s", code: 2, says: "--step is -1s|500ms"},
	{line: "join run --threads 1.5", code: 2, says: "--threads: \"1.5\"|whole number", then: "set --reset threads", next: "type which"},
	{line: "join run --pace 5", code: 2, says: "--pace: \"5\"|with a unit", then: "set --reset pace", next: "type which"},
	{line: "join run --keep 0", code: 2, says: "--keep: \"0\"|write a size like 20GB"},
	{line: "join run --up 0", code: 2, says: "--up: \"0\"|write it like 20mbit"},
	{line: "join run --down fast", code: 2, says: "--down: \"fast\"|write it like 20mbit"},
	{line: "join run --quota 0GB/month", code: 2, says: "--quota: \"0GB/month\"|write it like 300GB/month"},
	{line: "join run --hours 25-07", code: 2, says: "--hours: \"25-07\"|write them like 22-07"},
	{line: "join run --hours 22-22", code: 2, says: "--hours: \"22-22\"|write them like 22-07"},
	{line: "join run --eval-bytes x", code: 2, says: "--eval-bytes: \"x\"|whole number"},
	{line: "join run --observe=maybe", code: 2, says: "--observe|\"maybe\"|true, 1, yes"},
	{line: "join run --every x --export y", code: 2, says: "--every: \"x\"|write it like 20M"},
	{line: "generate run --temperature abc", code: 2, says: "--temperature: \"abc\"|no number"},
	{line: "sim --nodes x", code: 2, says: "--nodes: \"x\"|whole number"},
	{line: "sim --nodes 0", code: 2, says: "--nodes is 0|use more"},
	{line: "testnet --nodes 1000", code: 2, says: "--nodes is 1000|use 1 to 256"},
	{line: "testnet --link loss=200%", code: 2, says: "--link|loss is 200%|use 0% to 20%"},
	{line: "data tokenizer --train 1 --out tk text.txt", code: 2, says: "--train|vocabulary of 1|use 257"},
	{line: "data tokenizer --train x --out tk text.txt", code: 2, says: "--train: \"x\"|whole number"},
	// Flags.
	{line: "new n --tokns 5", code: 2, says: "unknown flag --tokns|did you mean \"--tokens\""},
	{line: "join run --log-level", code: 2, says: "--log-level|no value|write one"},
	{line: "join run --no-such", code: 2, says: "unknown flag --no-such"},
	{line: "new n --step 1s", code: 2, says: "--step is for --bandwidth|pass both"},
	{line: "new n --context 5", code: 2, says: "--context is for --from|pass both"},
	{line: "new n --base x", code: 2, says: "--base|name their folder by --from"},
	{line: "new n --from run", code: 2, says: "--from needs --tokens"},
	{line: "new n --admission open --uses 5", code: 2, says: "--uses|--admission open|leave them out"},
	{line: "new n --admission closed", code: 2, says: "--admission must be one of|got \"closed\""},
	{line: "new n --optimizer sgd", code: 2, says: "--optimizer must be one of|got \"sgd\""},
	{line: "set run --up 5mbit --reset up", code: 2, says: "--up is typed, and named in --reset|leave one"},
	{line: "set run --reset upp", code: 2, says: "--reset \"upp\"|did you mean \"up\""},
	{line: "set run --reset learner", code: 2, says: "--reset \"learner\"|--learner builtin"},
	{line: "set run --as a/b", code: 2, says: "--as: \"a/b\"|use letters"},
	{line: "set empty --up 5mbit", code: 2, says: "empty holds no node|type the folder of one"},
	{line: "logs run -n x", code: 2, says: "unknown flag -n"},
	{line: "export run", code: 2, says: "missing flags: --out=DIR|type them too"},
	{line: "data build text.txt", code: 2, says: "missing flags: --out=DIR"},
	{line: "data", code: 2, says: "expected one of|\"tokenizer\""},
	{line: "completion tcsh", code: 2, says: "must be one of \"bash\",\"zsh\",\"fish\"|got \"tcsh\""},
	{line: "doctor x y", code: 2, says: "unexpected argument y|leave it out"},
	// Paths, and what is in them.
	{line: "status absent", code: 2, says: "there is no folder \"absent\""},
	{line: "status empty", code: 1, says: "empty: no node is running|none has left a status", then: "join empty", next: "holds no run yet"},
	{line: "logs empty", code: 1, says: "empty|record of events", then: "join empty", next: "holds no run yet"},
	{line: "peers empty", code: 1, says: "empty: no node is running", then: "join empty", next: "holds no run yet"},
	{line: "key empty", code: 1, says: "empty: there is no key", then: "join empty", next: "holds no run yet"},
	{line: "join empty", code: 2, says: "empty holds no run yet|join link", then: "new empty"},
	{line: "ledger bare", code: 1, says: "bare: not a node's folder|pass the folder that"},
	{line: "verify bare", code: 1, says: "bare: not a node's folder|pass the folder that"},
	{line: "generate bare", code: 1, says: "bare: not a node's folder|pass the folder that"},
	{line: "report bare", code: 1, says: "bare: not a node's folder|pass the folder that"},
	{line: "pause bare", code: 1, says: "bare: no node is running", then: "join bare", next: "holds no run yet"},
	{line: "leave bare", code: 1, says: "bare: no node is running", then: "join bare", next: "holds no run yet"},
	{line: "new run", code: 1, says: "run has a run already|another folder"},
	{line: "new /proc/x", code: 1, says: "/proc/x|choose another folder"},
	{line: "new n --data absent", code: 1, says: "absent|pass files and folders"},
	{line: "new n --data /dev/null", code: 1, says: "/dev/null is a pipe or a device|pass a file or a folder"},
	{line: "new n --data bare", code: 1, says: "bare holds no text|pass a file or a folder of text"},
	{line: "new n --owner text.txt", code: 1, says: "text.txt|chmod 600"},
	{line: "new n --owner absent/x", code: 1, says: "absent/x|choose another"},
	{line: "new n --model absent.json", code: 1, says: "absent.json|use tiny, small, base"},
	{line: "new n --model cut.json", code: 1, says: "cut.json|write them like {"},
	{line: "new n --model kind.json", code: 1, says: "kind.json: Vocab is of the kind string, and a whole number belongs there; write them like {"},
	{line: "new n --model list.json", code: 1, says: "list.json: it is of the kind array, and another belongs there"},
	{line: "sim --scenario kind.json", code: 1, says: "kind.json: Seed is of the kind string|--save"},
	{line: "data show kinds", code: 1, says: "kinds: manifest: shards is of the kind number, and another belongs there"},
	{line: "new n --model nothing.json", code: 1, says: "nothing.json|write them like {"},
	{line: "new n --model unknown.json", code: 1, says: "unknown.json|unknown field \"arch\"|write them like {"},
	{line: "new n --from absent --tokens 1M", code: 1, says: "absent/config.json|a model in the form of Hugging Face has"},
	{line: "join cutgenesis", code: 1, says: "genesis file in cutgenesis|with the join link"},
	{line: "join nogenesis", code: 1, says: "genesis file in nogenesis|with the join link"},
	{line: "join badsettings", code: 2, says: "badsettings/settings.toml|--up: \"5\"|mend the file, or remove it"},
	{line: "join cutsettings", code: 2, says: "cutsettings/settings.toml, line 1|mend the file, or remove it"},
	{line: "join badinvite", code: 2, says: "badinvite/invite is damaged|delete it"},
	{line: "join badowner", code: 1, says: "badowner/owner|restore it from a backup"},
	{line: "join badcertificate --listen /ip4/127.0.0.1/tcp/0 --no-mdns", code: 2, says: "badcertificate/certificate is damaged|delete it"},
	{line: "join x --genesis text.txt", code: 1, says: "text.txt|atoll new` wrote"},
	{line: "join x --genesis bare", code: 1, says: "bare|is a directory"},
	{line: "join x --genesis cutgenesis/genesis", code: 1, says: "cutgenesis/genesis|atoll new` wrote"},
	{line: "join run --owner absent", code: 1, says: "owner's key absent|atoll new wrote"},
	{line: "join run --data other.txt --listen /ip4/127.0.0.1/tcp/0 --no-mdns", code: 1, says: "trains on \"text.txt\"|other.txt|pass --data PATH"},
	{line: "export run --out bare", code: 1, says: "bare exists already|choose another folder"},
	{line: "key run --import absent", code: 1, says: "absent|key --export"},
	{line: "key run --import text.txt", code: 1, says: "text.txt holds no exported key|64 hex digits"},
	{line: "trace run", code: 1, says: "run: no trace there|--trace"},
	{line: "trace text.txt", code: 1, says: "text.txt|line 1|--trace"},
	{line: "trace traced --author zz", code: 2, says: "--author \"zz\"|atoll peers"},
	{line: "sim --scenario text.txt", code: 1, says: "text.txt|--save"},
	{line: "sim --script text.txt", code: 2, says: "text.txt:1|no line begins with this word|use one of"},
	{line: "testnet run", code: 1, says: "run holds an earlier testnet|another folder"},
	{line: "testnet --data absent", code: 1, says: "absent|pass files and folders"},
	{line: "data build --out c absent", code: 1, says: "absent|pass files and folders"},
	{line: "data build --out c bare", code: 1, says: "too few documents|pass more text"},
	{line: "data build --out run text.txt", code: 1, says: "run has other files|pass a new folder"},
	{line: "data build --out c --tokenizer absent text.txt", code: 1, says: "read the tokenizer: open absent|atoll data tokenizer"},
	{line: "data build --out c --tokenizer text.txt text.txt", code: 1, says: "read the tokenizer text.txt|atoll data tokenizer"},
	{line: "data build --out c --mirror ftp://x text.txt", code: 1, says: "mirror \"ftp://x\"|https://"},
	{line: "data show absent", code: 1, says: "absent/manifest.json|atoll data build", then: "data build", next: "missing flags: --out=DIR"},
	// Addresses and ports.
	{line: "join run --listen /ip4/127.0.0.1", code: 2, says: "--listen|\"/ip4/127.0.0.1\"|want something like"},
	{line: "join run --listen /ip4/300.0.0.1/tcp/1", code: 2, says: "--listen|300.0.0.1|want something like"},
	{line: "join run --listen /ip4/127.0.0.1/tcp/99999", code: 2, says: "--listen|99999|want something like"},
	{line: "join run --listen /ip4/192.0.2.99/tcp/4001 --no-mdns", code: 1, says: "listen on /ip4/192.0.2.99/tcp/4001|an address of this machine"},
	{line: "join run --web 127.0.0.1:99999", code: 2, says: "--web|\"99999\" is no port|127.0.0.1:7070"},
	{line: "join run --web 192.0.2.99:7070", code: 1, says: "--web|192.0.2.99:7070|use 127.0.0.1:7070"},
	{line: "join run --web http://127.0.0.1:7070", code: 2, says: "--web|no address with a port|127.0.0.1:7070"},
	// The environment and --config.
	{line: "--config", code: 2, says: "--config|no value|write one"},
	{line: "--config absent.toml status run", code: 2, says: "--config|absent.toml|type the name of one"},
	{line: "--config text.txt status run", code: 2, says: "text.txt, line 1"},
	{line: "--config bare status run", code: 2, says: "bare|is a directory"},
	{line: "generate run", env: "ATOLL_GENERATE_LENGTH=x", code: 2, says: "--length|\"x\"|ATOLL_GENERATE_LENGTH=x"},
	{line: "join run", env: "ATOLL_JOIN_UP=5", code: 2, says: "--up: \"5\"|write it like 20mbit|ATOLL_JOIN_UP=5"},
	{line: "status", env: "ATOLL_DIR=absent", code: 2, says: "there is no folder \"absent\""},
	// Learners.
	{line: "doctor --try --learner nosuchprogram", code: 1, says: "OUTnosuchprogram|OUTcheck its spelling and PATH"},
}

// What people type wrongly is answered by the thing, the value and the remedy; a remedy that can be typed works.
func TestWrongInputs(t *testing.T) {
	words := wrongPlace(t)
	helped := map[string]bool{}
	for _, c := range wrongInputs {
		t.Run(c.line, func(t *testing.T) {
			if name, value, set := strings.Cut(c.env, "="); set {
				t.Setenv(name, value)
			}
			code, stdout, stderr := typed(t, strings.Fields(words.Replace(c.line))...)
			for _, part := range strings.Split(words.Replace(c.says), "|") {
				in := stderr
				if rest, ok := strings.CutPrefix(part, "OUT"); ok {
					in, part = stdout, rest
				}
				if !strings.Contains(in, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			help := helpNamed.FindStringSubmatch(stderr)
			if code == exitUsage && help == nil && !strings.Contains(stderr, "is damaged") {
				t.Error("it names no help")
			}
			if help != nil && !helped[help[1]] {
				helped[help[1]] = true
				if code, _, stderr := typed(t, strings.Fields(help[1])...); code != exitDone {
					t.Errorf("%s: exit code %d: %s", help[1], code, stderr)
				}
			}
			if c.then != "" {
				code, _, said := typed(t, strings.Fields(c.then)...)
				if !strings.Contains(stderr, "atoll "+c.then) || (code == exitDone) != (c.next == "") || !strings.Contains(said, c.next) {
					t.Errorf("%s, exit code %d: %s", c.then, code, said)
				}
			}
			if code != c.code || t.Failed() {
				t.Errorf("exit code %d, want %d; %s%s", code, c.code, stdout, stderr)
			}
			if left, _ := filepath.Glob("[cnx]"); len(left) > 0 {
				t.Errorf("it leaves %q", left)
			}
		})
	}
}

var helpNamed = regexp.MustCompile("Run `atoll (.*--help)` to see what there is")

// Where there is no folder of a node, each command says how to come to one.
func TestNoFolderHere(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, command := range []string{"key", "join", "trace", "verify"} {
		code, _, stderr := typed(t, command)
		if want := "there is no atoll folder here: go to one, or type `atoll " + command + " DIR`; `atoll new` makes one"; code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", command, code, stderr)
		}
	}
}

// wrongPlace makes the current folder one with runs, sound and damaged, and says what stands for the links.
func wrongPlace(t *testing.T) *strings.Replacer {
	t.Helper()
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	make := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := typed(t, args...)
		if code != exitDone {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr)
		}
		return strings.TrimSpace(stdout)
	}
	write("text.txt", "the rays of light are bent\n"+strings.Repeat("and bent again\n", 1000))
	write("other.txt", strings.Repeat("another text\n", 1000))
	write("cut.json", `{"vocab": 256,`)
	write("nothing.json", "")
	write("list.json", "[]")
	write("kind.json", `{"vocab": "x", "Seed": "x"}`)
	write("kinds/manifest.json", `{"shards":3}`)
	write("unknown.json", `{"arch": 1}`)
	for _, dir := range []string{"empty", "bare"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	make("new", "run", "--data", "text.txt", "--tokens", "1M")
	make("new", "other", "--data", "other.txt", "--tokens", "1M")
	make("new", "open", "--admission", "open", "--tokens", "1M")
	for dir, damage := range map[string][2]string{
		"cutgenesis": {"genesis", `{"Name": "x"`}, "nogenesis": {"genesis", ""}, "badsettings": {"settings.toml", `up = "5"`}, "cutsettings": {"settings.toml", `up = "`},
		"badinvite": {"invite", "xx"}, "badowner": {"owner", "xx"}, "badcertificate": {"certificate", "xx"},
	} {
		if err := os.CopyFS(dir, os.DirFS("run")); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, damage[0]), damage[1])
		if err := os.Chmod(filepath.Join(dir, ownerName), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("traced/trace.jsonl", `{"delta":"`+strings.Repeat("ab", 32)+`","node":"`+strings.Repeat("cd", 32)+`","author":"`+strings.Repeat("ef", 32)+`","end":"adopted"}`+"\n")
	link, other := make("invite", "run"), make("invite", "other")
	cut := link[:100]
	return strings.NewReplacer("CUTSHOWN", link[:len("atoll:")+8], "CUT", cut, "LINK", link, "OTHER", other, "BARE", linkOnly(link), "UPPER", strings.ToUpper(link))
}
