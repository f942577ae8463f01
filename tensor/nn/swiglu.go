package nn

// SwiGLU is the gated unit of the Llama feed-forward layer (Shazeer, arXiv
// 2002.05202):
//
//	act = silu(gate) * up,  silu(x) = x / (1 + exp(-x))
//
//	act    [rows, dim]
//	gateUp [rows, 2*dim]: gate, then up
func SwiGLU(act, gateUp []float32, rows, dim int) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := gateUp[2*r*dim : 2*(r+1)*dim]
			gateRow(act[r*dim:(r+1)*dim], row[:dim], row[dim:])
		}
	})
}

// SwiGLUBackward is the gradient of SwiGLU. It also writes act again, which
// costs nothing here and spares the forward pass keeping it for each layer.
//
//	dgateUp [rows, 2*dim], overwritten
//	act     [rows, dim], overwritten
//	dact    [rows, dim]
//	gateUp  [rows, 2*dim]
func SwiGLUBackward(dgateUp, act, dact, gateUp []float32, rows, dim int) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row, drow := gateUp[2*r*dim:2*(r+1)*dim], dgateUp[2*r*dim:2*(r+1)*dim]
			a, b := r*dim, (r+1)*dim
			gateRowBackward(drow[:dim], drow[dim:], act[a:b], dact[a:b], row[:dim], row[dim:])
		}
	})
}

func gateRow(act, gate, up []float32) {
	sigmoid(act, gate)
	gate, up = gate[:len(act)], up[:len(act)]
	for i, s := range act {
		act[i] = s * gate[i] * up[i]
	}
}

// gateRowBackward uses d silu(x)/dx = s (1 + x (1 - s)) with s = sigmoid(x).
func gateRowBackward(dgate, dup, act, dact, gate, up []float32) {
	sigmoid(act, gate)
	dgate, dup, dact = dgate[:len(act)], dup[:len(act)], dact[:len(act)]
	gate, up = gate[:len(act)], up[:len(act)]
	for i, s := range act {
		g, u, d := gate[i], up[i], dact[i]
		act[i] = s * g * u
		dup[i] = d * s * g
		dgate[i] = d * u * s * (1 + g*(1-s))
	}
}
