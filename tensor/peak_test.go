package tensor

import "testing"

// Operations are counted in proportion to the rounds, on every kernel.
func TestMultiplyAdds(t *testing.T) {
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) {
			defer swap(k)()
			one := MultiplyAdds(1)
			if one < 2 || MultiplyAdds(0) != 0 || MultiplyAdds(7) != 7*one {
				t.Errorf("1 round: %v, 0: %v, 7: %v", one, MultiplyAdds(0), MultiplyAdds(7))
			}
		})
	}
}
