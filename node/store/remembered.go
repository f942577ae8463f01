package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ContactsFile, in a node's folder, remembers where the node and its peers were
// reached. With it a restart finds the run without the link, and is found at the
// address that others know.
const ContactsFile = "contacts.json"

// Contacts is what the file holds.
type Contacts struct {
	Listen []string // multiaddrs that this node listened on, with their ports
	Named  []string // peers of the last join link
	Peers  []string // addresses of peers, ending in /p2p/ID
}

// TextFile keeps, in a node's folder, the path of the text that the node was told to train on, for starts without --data.
const TextFile = "text"

// LoadText is the path of the text that the node of a folder was last told to train on, "" if it was told none.
func LoadText(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, TextFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// LearnerFile keeps, in a node's folder, the program that trains, for starts without --learner.
const LearnerFile = "learner.cmd"

// LoadLearner is the program that the node of a folder last trained with, "" for the built-in
// trainer.
func LoadLearner(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, LearnerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// ErrContacts says that the file of contacts is damaged.
var ErrContacts = errors.New("contacts of an earlier start are damaged")

// LoadContacts reads the contacts kept in dir, none if there is no file.
func LoadContacts(dir string) (c Contacts, err error) {
	b, err := os.ReadFile(filepath.Join(dir, ContactsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Contacts{}, nil
	}
	if err != nil {
		return Contacts{}, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return Contacts{}, fmt.Errorf("%s: %w: %w", ContactsFile, ErrContacts, err)
	}
	return c, nil
}

// Encode returns what LoadContacts reads.
func (c Contacts) Encode() ([]byte, error) { return json.MarshalIndent(c, "", "  ") }

// TrafficFile counts, in a node's folder, what the node sent and received, for a quota that
// outlives restarts.
const TrafficFile = "traffic.json"

// LoadTraffic reads that file, nil if there is none.
func LoadTraffic(dir string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, TrafficFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// SaveTraffic writes the file. It is durable on return: a power cut must not give a part of
// a quota back.
func (d Disk) SaveTraffic(dir string, b []byte) error { return d.saveDurably(dir, TrafficFile, b) }

// SettingsFile keeps, in a node's folder, what its owner has set for this machine, for starts that are not told.
const SettingsFile = "settings.toml"

// SaveSettings writes the file, durably: after a power cut the limits are those of before.
func (d Disk) SaveSettings(dir string, b []byte) error { return d.saveDurably(dir, SettingsFile, b) }

// SaveLearner writes the program that trains at the next start, durably as a setting.
func (d Disk) SaveLearner(dir string, b []byte) error { return d.saveDurably(dir, LearnerFile, b) }

// SaveAdmission writes a file of what admits a node, or others at it, durably: without it the next start may be refused.
func (d Disk) SaveAdmission(dir, name string, b []byte) error { return d.saveDurably(dir, name, b) }

func (d Disk) saveDurably(dir, name string, b []byte) error {
	if err := makeTemp(dir); err != nil {
		return err
	}
	return d.writeFile(dir, name, b, synced)
}
