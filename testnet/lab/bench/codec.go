package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"atoll/tensor/codec"
)

// Codec is what one codec costs on one core, on normal data.
type Codec struct {
	Bench         string  `json:"bench"` // "codec"
	Codec         string  `json:"codec"`
	BytesPerParam float64 `json:"bytes_per_param"`
	EncodePerS    float64 `json:"encode_gparam_per_s"`
	EncodeBest    float64 `json:"encode_best_gparam_per_s"` // of all parts: what other work on the machine hides
	EncodeSpread  float64 `json:"encode_spread"`
	DecodePerS    float64 `json:"decode_add_gparam_per_s"` // decoded, weighted and added to a sum in float64, as a fold does
	DecodeBest    float64 `json:"decode_add_best_gparam_per_s"`
	DecodeSpread  float64 `json:"decode_add_spread"`
}

const (
	// codecValues is a fragment of a small model, and beyond the second cache.
	codecValues = 1 << 20
	// progress is about the size of what a learner publishes.
	progress = 0.01
)

// Codecs measures every codec.
func Codecs(ctx context.Context, m Meter) ([]Codec, error) {
	v := normal(rand.New(rand.NewPCG(1, 1)), codecValues, progress)
	var results []Codec
	for _, k := range codec.Kinds() {
		m.report(fmt.Sprintf("codec %v", k))
		r, err := measureCodec(ctx, m, k, v)
		if err != nil {
			return nil, fmt.Errorf("codec %v: %w", k, err)
		}
		results = append(results, r)
	}
	return results, nil
}

func measureCodec(ctx context.Context, m Meter, k codec.Kind, v []float32) (Codec, error) {
	payload, err := codec.Encode(k, v)
	if err != nil {
		return Codec{}, err
	}
	encode, err := m.repeat(ctx, func() error {
		_, err := codec.Encode(k, v)
		return err
	})
	if err != nil {
		return Codec{}, err
	}
	sum := make([]float64, len(v))
	decode, err := m.repeat(ctx, func() error {
		return codec.Add(payload, len(v), 0.5, sum)
	})
	giga := float64(len(v)) / 1e9
	return Codec{
		Bench: "codec", Codec: k.String(), BytesPerParam: float64(len(payload)) / float64(len(v)),
		EncodePerS: giga / encode.Median, EncodeBest: giga / encode.Min, EncodeSpread: encode.Spread,
		DecodePerS: giga / decode.Median, DecodeBest: giga / decode.Min, DecodeSpread: decode.Spread,
	}, err
}
