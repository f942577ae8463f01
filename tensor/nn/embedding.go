package nn

import "atoll/tensor"

// Embedding looks up one row of the table per token.
//
//	out    [len(tokens), dim]
//	weight [vocab, dim]
func Embedding(out, weight []float32, tokens []int32, dim int) {
	for r, t := range tokens {
		copy(out[r*dim:(r+1)*dim], weight[int(t)*dim:(int(t)+1)*dim])
	}
}

// EmbeddingBackward adds each row of dout to the row of dweight that its token
// was read from.
//
//	dweight [vocab, dim], added to
//	dout    [len(tokens), dim]
func EmbeddingBackward(dweight, dout []float32, tokens []int32, dim int) {
	for r, t := range tokens {
		tensor.Add(dout[r*dim:(r+1)*dim], dweight[int(t)*dim:(int(t)+1)*dim])
	}
}
