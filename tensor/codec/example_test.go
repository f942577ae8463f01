package codec_test

import (
	"fmt"

	"atoll/tensor/codec"
)

// A payload names its codec, so that whoever has it can decode it.
func ExampleEncode() {
	progress := []float32{0.5, -1, 0.25, 1}
	payload, err := codec.Encode(codec.Int4, progress)
	if err != nil {
		panic(err)
	}
	kind, _ := codec.KindOf(payload)
	decoded := make([]float32, len(progress))
	err = codec.Decode(payload, len(decoded), decoded)
	fmt.Printf("%v %.2f %v\n", kind, decoded, err)
	// Output: int4 [0.54 -0.94 0.27 0.94] <nil>
}
