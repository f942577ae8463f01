package natlab

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	good := Net{Machines: []string{"a"}, Nets: []Net{{Router: "r", Machines: []string{"b"}, Nets: []Net{{Router: "r2"}}}}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, n := range map[string]Net{
		"the internet has none":     {Router: "r"},
		`two places are named "a"`:  {Machines: []string{"a"}, Nets: []Net{{Router: "r", Machines: []string{"a"}}}},
		`name "Box"`:                {Machines: []string{"Box"}},
		`name "muchtoolong"`:        {Nets: []Net{{Router: "muchtoolong"}}},
		"100 places on one network": {Machines: make100()},
		`name ""`:                   {Nets: []Net{{}}},
	} {
		if err := n.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func make100() (names []string) {
	for i := range 100 {
		names = append(names, "m"+string(rune('a'+i/10))+string(rune('a'+i%10)))
	}
	return names
}
