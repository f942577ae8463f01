package store

import "testing"

// Payloads of 50 KB, about the size for a tiny model's fragment at int4.
func benchmarkPut(b *testing.B, put func(s *Store, d delta) error) {
	s, err := Open(b.TempDir(), testRun)
	must(b, err)
	payload := make([]byte, 50_000)
	deltas := make([]delta, b.N)
	for i := range deltas {
		payload[0], payload[1], payload[2] = byte(i), byte(i>>8), byte(i>>16)
		deltas[i] = deltaOf(1, 0, uint32(i+1), append([]byte(nil), payload...))
	}
	b.ResetTimer()
	for _, d := range deltas {
		must(b, put(s, d))
	}
	must(b, s.Close())
}

func BenchmarkPutDelta(b *testing.B) {
	benchmarkPut(b, func(s *Store, d delta) error { return d.put(s) })
}

func BenchmarkPutOwn(b *testing.B) {
	benchmarkPut(b, func(s *Store, d delta) error { return d.putOwn(s, uint64(d.h.Header.Round)) })
}
