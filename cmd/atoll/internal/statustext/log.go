package statustext

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

// LogHandler writes log lines of a level and above to stderr. Who asks for more than warnings debugs, and gets them as they are. Others
// read them between the sentences of a command, as one.
func LogHandler(out *cli.Console, least slog.Level) slog.Handler {
	if least < slog.LevelWarn {
		return slog.NewTextHandler(out.Err, &slog.HandlerOptions{Level: least})
	}
	return sentences{out, least, ""}
}

// sentences is a log for people.
type sentences struct {
	out   *cli.Console
	least slog.Level
	attrs string
}

// Enabled implements slog.Handler, as do the methods below.
func (h sentences) Enabled(_ context.Context, level slog.Level) bool { return level >= h.least }

func (h sentences) Handle(_ context.Context, r slog.Record) error {
	attrs := h.attrs
	r.Attrs(func(a slog.Attr) bool { attrs += attrText(a); return true })
	if attrs != "" {
		attrs = " (" + strings.TrimPrefix(attrs, ", ") + ")"
	}
	h.out.Say("%s %s", r.Time.Format(time.TimeOnly), status.Printable(r.Message+attrs))
	return nil
}

func (h sentences) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += attrText(a)
	}
	return h
}

func (h sentences) WithGroup(string) slog.Handler { return h }

func attrText(a slog.Attr) string { return fmt.Sprintf(", %s %v", a.Key, a.Value) }
