package genesis

import "fmt"

// OwnText is Data.Name of a run in which each learner trains on its own text. Such a run has no Data.SHA256.
const OwnText = "each learner's own text"

// Check refuses a text that is not the run's. name and sha256 are the text's; path is the --data that named it, "" if
// nothing did.
func (d Data) Check(name, sha256, path string) error {
	switch {
	case d.SHA256 == "" && d.Name == OwnText && path == "":
		return fmt.Errorf("each learner of this run trains on its own text; pass --data PATH with yours")
	case d.SHA256 == "" || d.SHA256 == sha256:
		return nil
	case path == "":
		return fmt.Errorf("this machine has another text than the run, which trains on %s: without --data this node would train on %s; %s", d, Data{name, sha256}, TextRemedy)
	}
	return fmt.Errorf("this machine has another text than the run, which trains on %s: %s is %s; %s", d, path, Data{name, sha256}, TextRemedy)
}

// TextRemedy says what to do about a text that is not the run's.
const TextRemedy = "pass --data PATH with the text of the run, unchanged"

// String shows the corpus in a sentence.
func (d Data) String() string { return fmt.Sprintf("%q (sha256 %.16s)", d.Name, d.SHA256) }
