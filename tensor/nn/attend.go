package nn

import "atoll/tensor"

// AttentionRow is Attention for a single position, the last of n, whose
// predecessors' keys and values are kept from earlier calls.
//
//	out    [Heads*HeadDim]
//	query  [Heads*HeadDim], after Rope.ApplyAt
//	keys   [n, KVHeads*HeadDim], after Rope.ApplyAt
//	values [n, KVHeads*HeadDim]
//	scores at least n values to work in
func AttentionRow(out, query, keys, values, scores []float32, n int, s AttentionShape) {
	stride := s.KVHeads * s.HeadDim
	for h := range s.Heads {
		lo, at := h*s.HeadDim, h/s.group()*s.HeadDim
		q, o := query[lo:lo+s.HeadDim], out[lo:lo+s.HeadDim]
		for t := range n {
			scores[t] = s.scale() * float32(tensor.Dot(q, keys[t*stride+at:][:s.HeadDim]))
		}
		sum := tensor.ExpSum(scores[:n], scores[:n], tensor.Max(scores[:n]))
		clear(o)
		for t := range n {
			tensor.Axpy(scores[t]/sum, values[t*stride+at:][:s.HeadDim], o)
		}
	}
}
