package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Config is what Run needs.
type Config struct {
	Source *Source
	In     io.Reader // keys
	Out    io.Writer // a terminal
	ASCII  bool      // the terminal knows no other characters
}

// Run shows the nodes of a source until somebody quits, ctx ends or all nodes have ended. It returns
// what was last known of them. The terminal is as before when it returns, also after a panic.
func Run(ctx context.Context, cfg Config) ([]Node, error) {
	m := &model{ctx: ctx, source: cfg.Source, screen: Screen{Colour: true, ASCII: cfg.ASCII}}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithoutSignalHandler())
	_, err := p.Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrProgramPanic) {
		err = nil // it was asked to end
	}
	return m.history.nodes, err
}

// Ended reports whether all nodes have ended.
func Ended(nodes []Node) bool { return ended(nodes) }

// model is the state of the screen.
type model struct {
	ctx     context.Context
	source  *Source
	history History
	screen  Screen
	idle    int // polls in a row that found no node
}

// polled is what a poll found.
type polled struct {
	at    time.Time
	nodes []Node
	idle  bool
}

func (m *model) poll() tea.Msg {
	nodes := m.source.Poll(m.ctx)
	return polled{time.Now(), nodes, m.source.Idle()}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return m.poll }

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case polled:
		m.history.Add(msg.at, msg.nodes)
		if m.idle++; !msg.idle {
			m.idle = 0
		}
		if ended(msg.nodes) || m.idle >= missesToEnd {
			return m, tea.Quit
		}
		return m, tea.Tick(pollEvery, func(time.Time) tea.Msg { return m.poll() })
	}
	return m, nil
}

// pageOfPeers is how far a page key goes.
const pageOfPeers = 10

func (m *model) key(name string) tea.Cmd {
	most := max(0, len(m.history.rows())-1)
	switch name {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "down", "j":
		m.screen.First++
	case "up", "k":
		m.screen.First--
	case "pgdown", "space":
		m.screen.First += pageOfPeers
	case "pgup":
		m.screen.First -= pageOfPeers
	case "home":
		m.screen.First = 0
	case "end":
		m.screen.First = most
	}
	m.screen.First = min(max(m.screen.First, 0), most)
	return nil
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(View(&m.history, m.screen))
	v.AltScreen = true
	v.WindowTitle = "atoll top"
	return v
}
