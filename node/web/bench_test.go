package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// BenchmarkView is what one view costs with five viewers of a run of forty machines: the view,
// its one encoding, and writing it to five connections. The time of the readers, which are in
// this process as well, is in it. A view is made each second, so 10 ms would be one per cent of a core.
func BenchmarkView(b *testing.B) {
	const viewers = 5
	streams, end := make(chan stream), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		s := stream{w, http.NewResponseController(w)}
		if err := s.control.Flush(); err != nil {
			b.Error(err)
		}
		streams <- s
		<-end
	}))
	defer server.Close()
	defer close(end)
	var open []stream
	for range viewers {
		go func() {
			res, err := http.Get(server.URL)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}()
		open = append(open, <-streams)
	}
	f, now := NewFeed(), testTime
	f.now = func() time.Time { return now }
	w := oneNode(trainingStatus(40))
	for b.Loop() {
		now = now.Add(viewEvery)
		f.Offer(w)
		view, _ := f.Encoded()
		for _, s := range open {
			if err := s.send("data: ", view, "\n\n"); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(viewers * len(view)))
	}
}
