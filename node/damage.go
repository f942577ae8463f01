package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/store"
)

// keptGenesis is the genesis file of the folder, nil if there is none. One that
// is damaged is set aside where the user or peers can give it again.
func (n *node) keptGenesis() ([]byte, error) {
	raw, err := store.LoadGenesis(n.cfg.Dir)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = genesis.Decode(raw)
	if err == nil {
		return raw, nil
	}
	path := filepath.Join(n.cfg.Dir, genesisFile)
	if n.cfg.Genesis == nil && (n.cfg.Link.Run == (wire.RunID{}) || len(n.cfg.addrs()) == 0) {
		return nil, fmt.Errorf("%s is damaged: %w: %s", path, err, store.GenesisRemedy)
	}
	if err := os.Rename(path, path+".damaged"); err != nil {
		return nil, fmt.Errorf("set the damaged genesis aside: %w", err)
	}
	n.log.Warn("the genesis file is damaged: takes it from --genesis, or asks the peers of the link for it", "file", path, "err", err)
	return nil, nil
}

// genesisFile is where store.SaveGenesis keeps the genesis.
const genesisFile = "genesis"

// reportDamage says what the start found damaged and went on without.
func (n *node) reportDamage() {
	if bad := n.steplog.Sum().Damaged; bad > 0 {
		n.screen.Alarm("damaged", "", fmt.Sprintf("%d records of the step log are damaged and not counted", bad), n.checkDisk())
	}
}

// checkDisk is what to do about files that are not what was written.
func (n *node) checkDisk() string { return "check the disk of " + n.cfg.Dir }
