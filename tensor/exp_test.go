package tensor

import (
	"math"
	"testing"
)

// inf and nan as float32.
var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// TestExpIsAccurate walks through the range of Exp in steps that hit all fractions.
func TestExpIsAccurate(t *testing.T) {
	const steps = 1 << 20
	x, y := make([]float32, steps), make([]float32, steps)
	for i := range x {
		x[i] = ExpMin + float32(float32(i)*(float32(ExpMax-ExpMin)/(steps-1))) // not fused, lest the last one end above ExpMax
	}
	Exp(y, x)
	worst := 0.0
	for i, v := range x {
		want := math.Exp(float64(v))
		worst = max(worst, math.Abs(float64(y[i])-want)/want)
	}
	if worst > 2e-7 {
		t.Errorf("Exp is off by up to %.3g of its value, want at most 2e-7", worst)
	}
}

func TestExpAtItsLimits(t *testing.T) {
	below, above := math.Nextafter32(ExpMin, -inf), math.Nextafter32(ExpMax, inf)
	for _, c := range []struct{ x, want float32 }{
		{0, 1}, {float32(math.Copysign(0, -1)), 1}, {1e-40, 1},
		{below, 0}, {-1e30, 0}, {-inf, 0}, {above, inf}, {inf, inf},
	} {
		if got := exp(c.x); got != c.want {
			t.Errorf("exp(%v) = %v, want %v", c.x, got, c.want)
		}
	}
	if got := exp(nan); got == got {
		t.Errorf("exp(NaN) = %v", got)
	}
	if got := exp(ExpMin); got < 0x1p-126*1e9 {
		t.Errorf("exp(%d) = %v leaves too little room above denormal numbers", ExpMin, got)
	}
}

func TestExpSumIsASoftmax(t *testing.T) {
	x := []float32{1, 3, -200, 2.5, 3}
	y := make([]float32, len(x))
	sum := ExpSum(y, x, Max(x))
	want := 0.0
	for i, v := range x {
		want += math.Exp(float64(v) - 3)
		if diff := math.Abs(float64(y[i]) - math.Exp(float64(v)-3)); diff > 1e-6 {
			t.Errorf("value %d is off by %v", i, diff)
		}
	}
	if math.Abs(float64(sum)-want) > 1e-6 {
		t.Errorf("sum %v, want %v", sum, want)
	}
	if y[2] != 0 {
		t.Errorf("a tail of e^-203 is %v, want 0", y[2])
	}
}

// swigluExact is gate * sigmoid(gate) * up.
func swigluExact(gate, up float64) float64 { return gate / (1 + math.Exp(-gate)) * up }

// TestSwiGLUAndItsGradient compares with float64 and with difference quotients.
func TestSwiGLUAndItsGradient(t *testing.T) {
	const h = 1e-4
	for gate := -20.0; gate <= 20; gate += 0.37 {
		const up, dOut = 0.75, -1.5
		var y, dGate, dUp, act [1]float32
		SwiGLU(y[:], []float32{float32(gate)}, []float32{up})
		SwiGLUGrad(dGate[:], dUp[:], act[:], []float32{dOut}, []float32{float32(gate)}, []float32{up})
		if act != y {
			t.Errorf("at %v the gradient gives %v, SwiGLU %v", gate, act, y)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"SwiGLU", float64(y[0]), swigluExact(gate, up)},
			{"slope by gate", float64(dGate[0]), dOut * (swigluExact(gate+h, up) - swigluExact(gate-h, up)) / (2 * h)},
			{"slope by up", float64(dUp[0]), dOut * (swigluExact(gate, up+h) - swigluExact(gate, up-h)) / (2 * h)},
		} {
			if math.Abs(c.got-c.want) > 1e-5*(1+math.Abs(c.want)) {
				t.Errorf("%s at %v is %v, want %v", c.name, gate, c.got, c.want)
			}
		}
	}
}

// TestSwiGLUFarOut keeps extreme inputs from becoming NaN.
func TestSwiGLUFarOut(t *testing.T) {
	var y, dGate, dUp, act [1]float32
	for _, gate := range []float32{-1e30, -100, -70, 70, 100} {
		SwiGLU(y[:], []float32{gate}, []float32{1})
		SwiGLUGrad(dGate[:], dUp[:], act[:], []float32{1}, []float32{gate}, []float32{1})
		want := max(gate, 0)
		if math.Abs(float64(y[0]-want)) > 1e-25 || y[0] != dUp[0] || act != y {
			t.Errorf("SwiGLU(%v) = %v, slope by up %v, want %v", gate, y[0], dUp[0], want)
		}
		if step := dGate[0]; gate < 0 && math.Abs(float64(step)) > 1e-25 || gate > 0 && step != 1 {
			t.Errorf("slope of SwiGLU at %v is %v", gate, step)
		}
	}
}
