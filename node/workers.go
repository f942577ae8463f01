package node

import (
	"context"
	"sync"

	"atoll/node/mailbox"
)

// workers are the goroutines beside the loop. stop waits for all of them.
type workers struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	disk   *mailbox.Mailbox[func()] // writes, in order
	folds  *mailbox.Mailbox[func()] // folds, one at a time
	sends  *mailbox.Mailbox[func()] // gossip messages, in order

	folding  context.Context // of the folds: unlike ctx it lets them finish
	cutFolds context.CancelFunc
}

func newWorkers() *workers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &workers{ctx: ctx, cancel: cancel}
	w.folding, w.cutFolds = context.WithCancel(context.Background())
	w.disk, w.folds, w.sends = w.queue(), w.queue(), w.queue()
	return w
}

// queue starts a goroutine that does what is put into the mailbox, in order.
func (w *workers) queue() *mailbox.Mailbox[func()] {
	q := mailbox.New[func()]()
	w.goRun(func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				q.Each(run)
				return
			case <-q.Ready():
				q.Each(run)
			}
		}
	})
	return q
}

func run(do func()) { do() }

// goRun runs f on a goroutine of its own.
func (w *workers) goRun(f func(context.Context)) {
	w.wg.Add(1)
	go func() {
		defer w.wg.Done()
		f(w.ctx)
	}()
}

// stop lets the queues finish and waits for every goroutine.
func (w *workers) stop() {
	w.cancel()
	w.wg.Wait()
	w.cutFolds()
}
