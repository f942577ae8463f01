package trainer

import "context"

// progressKey is where a context has the function that WithProgress was given.
type progressKey struct{}

// WithProgress has BitsPerByte and BitsPerByteOf tell now and then how many of all windows they have scored. They
// call told from their own goroutine.
func WithProgress(ctx context.Context, told func(done, all int)) context.Context {
	return context.WithValue(ctx, progressKey{}, told)
}

// progressOf is what a context has, or a function that does nothing.
func progressOf(ctx context.Context) func(done, all int) {
	if told, ok := ctx.Value(progressKey{}).(func(done, all int)); ok {
		return told
	}
	return func(int, int) {}
}
