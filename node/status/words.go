package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Weighed says what the columns of a list of machines mean that are parts of a whole.
const Weighed = "SHARE is a machine's part of all that the model learned from, WEIGHT its part in the newest rounds"

// Gave says what this machine gave to the model, and of a guest what that counts; "" where it has nothing to give.
func (s Snapshot) Gave() string {
	self := s.Own()
	folded := MeanTokens(s.Fragments, s.Account.OwnFolded)
	switch {
	case self.Guest && folded > 0:
		return fmt.Sprintf("this machine gave %s tokens as a guest; all guests together count for a tenth at most", Count(folded))
	case self.Guest:
		return "this machine is a guest and gave nothing yet; all guests together count for a tenth at most"
	case self.Share > 0:
		return fmt.Sprintf("this machine gave %s of what the model learned from", part(self.Share))
	case s.TokensTrained > 0 && !s.Finished:
		return "nothing of this machine is in the model yet: its first delta is on the way"
	}
	return ""
}

// NotYet says what a node does not know while it joins; "" where it knows it.
func NotYet(peers []Peer) string {
	if len(peers) == 0 || !peers[0].ShareUnknown {
		return ""
	}
	return "not known yet, as this machine still fetches what was folded"
}

// FoldedOf is how much of the budget is folded.
func (s Snapshot) FoldedOf() string {
	if text := NotYet(s.Peers); text != "" {
		return text
	}
	return fmt.Sprintf("%s of %s tokens", Count(float64(s.TokensFolded)), Count(float64(s.BudgetTokens)))
}

// earlierShare is the part of all tokens from which on a list says that it does not know who made them: below it is rounding.
const earlierShare = 0.005

// Shares says what a list of machines cannot know of their shares; "" where it knows all.
func Shares(peers []Peer) string {
	if text := NotYet(peers); text != "" {
		return "SHARE is " + text
	}
	earlier, guests := 1.0, false
	for _, p := range peers {
		earlier, guests = earlier-p.Share, guests || p.Guest
	}
	if earlier < earlierShare || earlier > 1-earlierShare || guests {
		return ""
	}
	return fmt.Sprintf("SHARE leaves out %.0f %%, which was folded before this machine came: it does not know by whom", 100*earlier)
}

// part is a share for people: none that is there is 0 %.
func part(share float64) string {
	if share < 0.01 {
		return fmt.Sprintf("%.2g %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// Own is the row of this node among the peers, zero where there is none yet.
func (s Snapshot) Own() Peer {
	for _, p := range s.Peers {
		if p.Self {
			return p
		}
	}
	return Peer{}
}

// Health says in one line whether all is well; "" while the node does not know.
func (s Snapshot) Health() string {
	for _, a := range s.Alarms {
		if !a.Passing() {
			return "somebody has to look: " + a.Text
		}
	}
	if len(s.Alarms) > 0 {
		return "not quite well, and it may pass by itself: " + s.Alarms[0].Text
	}
	training := 0
	for _, p := range s.Peers {
		if p.State == "training" {
			training++
		}
	}
	switch {
	case s.Finished && s.Agreed:
		return "all is well: every machine that is here has the same model"
	case s.Finished, training == 0:
		return ""
	case training == 1:
		return "all is well: 1 machine trains"
	}
	return fmt.Sprintf("all is well: %d machines train", training)
}

const stops = "you may stop it, and nothing is lost: Ctrl-C where it was started hands over what is left and leaves; "

// MayStop says what happens if a person stops this node.
func (s Snapshot) MayStop() string {
	switch {
	case s.Finished && s.Worse() != "":
		return "you may stop it: the run is over"
	case s.Finished:
		return "you may stop it: the run is over, and the model is in this folder"
	case s.State == "joining":
		return "you may stop it: Ctrl-C ends it, and nothing is lost"
	case LivePeers(s.Peers) == 0:
		return stops + "nobody else is here, so the run then waits for somebody to come back"
	}
	return stops + "the others go on, and the same command comes back"
}

// month is what people buy traffic for.
const month = 30 * 24 * time.Hour

// Month says what this node sends and receives in a month at its speed, or until the run is over where that is sooner; "" where nobody
// knows.
func (s Snapshot) Month() string {
	left := s.ETASeconds
	if s.Net.UpPerS+s.Net.DownPerS == 0 || left == 0 || s.Finished {
		return ""
	}
	if left < month.Seconds() {
		return fmt.Sprintf("sends about %s more and receives %s more until the run is over", Traffic(s.Net.UpPerS*left), Traffic(s.Net.DownPerS*left))
	}
	return fmt.Sprintf("sends %s and receives %s a month at this speed", Traffic(s.Net.UpPerS*month.Seconds()), Traffic(s.Net.DownPerS*month.Seconds()))
}

// Worth is what the model is worth on held-out text, "" where nobody has measured it.
func (s Snapshot) Worth() string {
	switch {
	case s.ValAtTokens == 0: // of the values that nobody has trained
		return ""
	case s.ValBPB > 0:
		return fmt.Sprintf("%.3f bits/byte, where less is better, on %s of held-out text", s.ValBPB, Bytes(float64(s.ValBytes)))
	case s.ValTokens > 0:
		return fmt.Sprintf("loss %.3f nats/token on %s tokens that the learner holds out", s.ValLoss, Count(float64(s.ValTokens)))
	case s.ValLoss > 0:
		return fmt.Sprintf("loss %.3f nats/token on what the learner holds out", s.ValLoss)
	}
	return ""
}

// By how much the model has to be worse than when this node first saw it before it says so: one that overfits a little is none, and the
// loss of training is that of other rows each time.
const (
	worseHeldOut  = 1.1
	worseTraining = 2
)

// Worse says that the model predicts held-out text worse than when this node first measured it, as that of a run with too
// large steps does; "" otherwise. Where nobody measures, it goes by the loss of this node's training.
func (s Snapshot) Worse() string {
	var val, loss, lastVal, lastLoss float32
	for _, p := range s.History {
		val, loss = cmp.Or(val, p.Val), cmp.Or(loss, p.Loss)
		lastVal, lastLoss = cmp.Or(p.Val, lastVal), cmp.Or(p.Loss, lastLoss)
	}
	if lastVal > worseHeldOut*val {
		return fmt.Sprintf("the model predicts held-out text worse than it did (%.4g, at first %.4g): do not use it", lastVal, val)
	}
	if val == 0 && lastLoss > worseTraining*loss {
		return fmt.Sprintf("the model predicts what it is trained on worse than it did (a loss of %.4g, at first %.4g): do not use it", lastLoss, loss)
	}
	return ""
}

// Lost says what a node that left on a disk in trouble could not publish, "" where it published all.
func (s Snapshot) Lost() string {
	most := slices.Max(append([]uint64{0}, s.Account.OwnUnpublished...))
	if s.Disk == "" || s.Finished || most == 0 {
		return ""
	}
	return fmt.Sprintf("%s tokens of work were not published, as the disk is %s, and are lost: make room or mend it before you leave", Count(float64(most)), s.Disk)
}

// Next is what to type with the model of a run that is over, and what that does; the folder is a shell's word.
func (s Snapshot) Next(dir string) (rows [][]string) {
	if !s.Brought {
		rows = [][]string{{"atoll generate " + dir + ` --prompt "The "`, "has the model write"}, {"atoll eval " + dir, "measures it in bits per byte of held-out text"}}
	}
	return append(rows, []string{"atoll export " + dir + " --out model", "writes it for from_pretrained of Hugging Face"},
		[]string{"atoll report " + dir, "writes the run as a page; with --share one without names and addresses"})
}

// Keeps says what becomes of the folder of a run that is over.
const Keeps = "the folder holds the model and the ledger: keep it for these commands, or remove it when nobody wants them"

// Said are the sentences that every screen says of a node beside its numbers, each with what it is about. Of one that does not run they
// are about what was folded alone.
func (s Snapshot) Said(running bool) (said [][]string) {
	rows := [][]string{{"gave", s.Gave()}, {"earlier", Shares(s.Peers)}, {"healthy", s.Health()}, {"stop", s.MayStop()}, {"ahead", s.Month()}}
	if !running {
		rows = rows[:2]
	}
	for _, row := range rows {
		if row[1] != "" {
			said = append(said, row)
		}
	}
	return said
}

// Sentence is a text with a capital letter and a full stop.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimRight(text[size:], ".") + "."
}
