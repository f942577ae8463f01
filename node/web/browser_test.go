package web

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// look is what a script in the page finds out about its layout.
const look = `(() => {
  const wide = [], faint = [];
  const scrolls = e => { for (; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
  const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > innerWidth + 0.5 && !scrolls(e.parentElement)) wide.push(e.tagName + '#' + e.id + '.' + e.className);
  }
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (!text || !e.checkVisibility() || e.closest('script, noscript, title')) continue;
    texts++;
    const style = getComputedStyle(e), svg = e instanceof SVGElement;
    const a = light(parse(svg ? style.fill : style.color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 || size >= 18.66 && style.fontWeight >= 600 ? 3 : 4.5)) faint.push(ratio.toFixed(2) + ' ' + text.slice(0, 40));
  }
  return { Scroll: document.documentElement.scrollWidth, Inner: innerWidth, Wide: wide, Faint: faint, Texts: texts, Hurt: window.hurt === 1, Images: document.images.length, Text: document.body.innerText };
})()`

// layout is what look answers.
type layout struct {
	Scroll, Inner int      // pixels
	Wide          []string // elements that stand out of the screen
	Faint         []string // texts whose contrast is below what WCAG 2.2 asks for, level AA
	Texts, Images int
	Hurt          bool // a script that a peer sent ran
	Text          string
}

// The page of every world fits every screen, can be read in light and dark, says what
// it must, and runs nothing that a peer sent.
func TestPageInABrowser(t *testing.T) {
	c := startChromium(t)
	for _, w := range testWorlds {
		s := serve(t, loopback, w.world)
		s.feed.now = nowOfTests
		for _, width := range []int{390, 800, 1440} {
			for _, dark := range []bool{false, true} {
				name := fmt.Sprintf("%s-%d", w.name, width)
				if dark {
					name += "-dark"
				}
				c.t, c.wrong = t, nil
				c.screen(width, 900, dark)
				c.open(s.URL(), w.says[0])
				c.judge(name, w.says)
			}
		}
	}
}

// judge looks at the page that is open, and keeps a picture of it in ATOLL_BROWSER_PICTURES.
func (c *chromium) judge(name string, says []string) {
	c.t.Helper()
	var l layout
	c.evaluate(look, &l)
	if dir := os.Getenv("ATOLL_BROWSER_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), c.picture(), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	if l.Scroll > l.Inner || len(l.Wide) > 0 {
		c.t.Errorf("%s: the page is %d pixels wide on a screen of %d: %q", name, l.Scroll, l.Inner, l.Wide)
	}
	if len(l.Faint) > 0 {
		c.t.Errorf("%s: these texts have too little contrast: %q", name, l.Faint)
	}
	if l.Hurt || l.Images > 1 {
		c.t.Errorf("%s: what a peer sent became markup: ran %v, %d images", name, l.Hurt, l.Images)
	}
	for _, finding := range c.axe() {
		c.t.Errorf("%s: axe-core: %s", name, finding)
	}
	if len(c.wrong) > 0 {
		c.t.Errorf("%s: the console says %q", name, c.wrong)
	}
	for _, text := range says {
		if !strings.Contains(l.Text, text) {
			c.t.Errorf("%s: the page does not say %q", name, text)
		}
	}
	if l.Texts < 3 {
		c.t.Errorf("%s: %d texts: this test looks at nothing", name, l.Texts)
	}
}

// axe is what axe-core finds, which knows what readers of screens need; none where ATOLL_AXE names no file of it.
func (c *chromium) axe() (findings []string) {
	c.t.Helper()
	path := os.Getenv("ATOLL_AXE")
	if path == "" {
		return nil
	}
	script, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.evaluate(string(script), nil)
	c.evaluate(`axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.map(n => n.target.join(' ')).slice(0, 4).join(', ')))`, &findings)
	return findings
}

// The link comes when somebody asks for it, with its picture.
func TestJoinInABrowser(t *testing.T) {
	c := startChromium(t)
	s := serve(t, loopback, oneNode(trainingStatus(3)))
	s.feed.now = nowOfTests
	c.screen(800, 900, false)
	c.open(s.URL(), "Show the command")
	var before bool
	c.evaluate("document.body.textContent.includes('secret-of-the-invite')", &before)
	if before {
		t.Error("the page has the secret before anybody asked")
	}
	c.evaluate("document.getElementById('reveal').click()", nil)
	c.until("!document.getElementById('qr').hidden")
	c.judge("join-800", []string{"atoll join atoll:57e73ea9", "#secret-of-the-invite", "Copy"})
	c.evaluate("document.getElementById('by-time').click()", nil)
	c.until("document.querySelector('.u-legend').textContent.includes('time')")
}

// The page says so when its node has ended, and goes on showing what it knew.
func TestEndInABrowser(t *testing.T) {
	c := startChromium(t)
	feed := NewFeed()
	feed.now = nowOfTests
	feed.Offer(fourNodes(false))
	s, err := Serve(loopback, feed, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.screen(800, 900, false)
	c.open(s.URL(), "4 machines train")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.until("!document.getElementById('lost').hidden")
	c.wrong = nil // of the stream that was cut
	c.judge("end-800", []string{"4 machines train", "The node does not answer"})
}

// A token opens the page, goes out of the address, and the stream comes by the cookie.
func TestTokenInABrowser(t *testing.T) {
	c := startChromium(t)
	s := serve(t, "0.0.0.0:0", oneNode(trainingStatus(3)))
	s.feed.now = nowOfTests
	c.screen(800, 900, false)
	c.open(s.URL(), "3 machines train")
	var at, cookie string
	c.evaluate("location.href", &at)
	c.evaluate("document.cookie", &cookie)
	if strings.Contains(at, "token") || cookie != "" {
		t.Errorf("the address is %s, scripts see the cookie %q", at, cookie)
	}
	if len(c.wrong) > 0 {
		t.Errorf("the console says %q", c.wrong)
	}
}
