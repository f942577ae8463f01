package codec_test

import (
	"fmt"

	"atoll/tensor/codec"
)

// A payload names its codec, so that whoever has it can decode it.
func ExampleEncode() {
	progress := []float32{0.5, -1, 0.25, 1}
	payload, err := codec.Encode(codec.Int8, progress)
	if err != nil {
		panic(err)
	}
	kind, _ := codec.KindOf(payload)
	decoded := make([]float32, len(progress))
	err = codec.Decode(payload, len(decoded), decoded)
	fmt.Printf("%v %.2f %v\n", kind, decoded, err)
	// Output: int8 [0.50 -1.00 0.25 1.00] <nil>
}
