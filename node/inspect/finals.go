package inspect

import (
	"fmt"

	"atoll/gossip/finality"
	"atoll/gossip/wire"
)

// Certified is what the certificates in a folder come to.
type Certified struct {
	Certificates int      `json:"certificates"`
	Round        uint32   `json:"round"`                  // up to which all fragments are certified
	Contradicted []string `json:"contradicted,omitempty"` // rounds that the ledger has otherwise, for people
}

// certified checks each certificate against the one before and against the ledger; nil if there is none. The error is
// for one that does not verify.
func (f *folder) certified() (*Certified, error) {
	var before *finality.Certificate
	var out Certified
	for {
		list, err := f.store.Finals(uint32(out.Certificates), wire.MaxFinals)
		if err != nil {
			return nil, err
		}
		for _, b := range list {
			c, err := finality.Parse(b)
			if err == nil {
				err = c.Verify(f.run, before)
			}
			if err != nil {
				return nil, fmt.Errorf("%d certificates before it are sound: %w", out.Certificates, err)
			}
			out.Certificates, out.Round, before = out.Certificates+1, c.Value.Round, &c
			out.Contradicted = append(out.Contradicted, f.contradicts(c)...)
		}
		if len(list) == 0 {
			break
		}
	}
	if out.Certificates == 0 {
		return nil, nil
	}
	return &out, nil
}

// contradicts are the points of a certificate that the ledger has otherwise. A round whose record it lacks is none.
func (f *folder) contradicts(c finality.Certificate) (rounds []string) {
	for p, point := range c.Value.Points {
		r, err := f.store.Round(p, point.Round)
		if err == nil && r.Chain != point.Chain {
			rounds = append(rounds, fmt.Sprintf("fragment %d round %d", p, point.Round))
		}
	}
	return rounds
}
