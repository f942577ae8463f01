package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// chromium is a browser without a screen, which a test steers by the DevTools protocol over
// pipes: https://chromedevtools.github.io/devtools-protocol.
type chromium struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
	wrong   []string // what its console said
}

// startChromium starts a browser, or skips the test.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	if os.Getenv("ATOLL_BROWSER") != "1" {
		t.Skip("set ATOLL_BROWSER=1 to look at the page in Chromium")
	}
	binary, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("no Chromium here (Debian package chromium): %v", err)
	}
	fromTest, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, toTest, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{fromTest, toTest} // its descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromTest.Close()
	toTest.Close()
	c := &chromium{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(sync.OnceFunc(func() {
		c.send("Browser.close", nil, "")
		to.Close()
		_ = cmd.Wait() // it says how it was closed
		from.Close()
	}))
	var target struct{ TargetID string }
	c.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	c.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		c.call(domain+".enable", nil, nil)
	}
	return c
}

func (c *chromium) send(method string, params map[string]any, session string) int {
	c.last++
	message := map[string]any{"id": c.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	b, err := json.Marshal(message)
	if err == nil {
		_, err = c.to.Write(append(b, 0))
	}
	if err != nil {
		c.t.Errorf("chromium: %v", err)
	}
	return c.last
}

// call sends a command and waits for its answer. It keeps what the console says meanwhile.
func (c *chromium) call(method string, params map[string]any, into any) {
	c.t.Helper()
	id := c.send(method, params, c.session)
	for {
		b, err := c.from.ReadBytes(0)
		if err != nil {
			c.t.Fatalf("chromium: %s: %v", method, err)
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(b[:len(b)-1], &m); err != nil {
			c.t.Fatalf("chromium: %v", err)
		}
		switch {
		case m.Method == "Log.entryAdded", m.Method == "Runtime.exceptionThrown":
			c.wrong = append(c.wrong, string(m.Params))
		case m.ID != id:
		case m.Error != nil:
			c.t.Fatalf("chromium: %s: %s", method, m.Error.Message)
		case into != nil:
			if err := json.Unmarshal(m.Result, into); err != nil {
				c.t.Fatalf("chromium: %s: %v", method, err)
			}
			return
		default:
			return
		}
	}
}

// screen sets the size of the screen, in pixels, and its colours.
func (c *chromium) screen(width, height int, dark bool) {
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// evaluate runs an expression in the page, waits if it is a promise, and reads its value.
func (c *chromium) evaluate(expression string, into any) {
	c.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%.60s...: %s", expression, answer.ExceptionDetails)
	}
	if into != nil {
		if err := json.Unmarshal(answer.Result.Value, into); err != nil {
			c.t.Fatalf("%.60s...: %s: %v", expression, answer.Result.Value, err)
		}
	}
}

// open goes to an address and waits until the page there shows a text.
func (c *chromium) open(url, text string) {
	c.t.Helper()
	c.call("Page.navigate", map[string]any{"url": url}, nil)
	c.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// until waits for a condition in the page.
func (c *chromium) until(condition string) {
	c.t.Helper()
	c.evaluate(fmt.Sprintf("new Promise(done => { const look = () => { try { if (%s) return done(true) } catch {} ; setTimeout(look, 20) }; look() })", condition), nil)
}

// picture is the whole page as a PNG.
func (c *chromium) picture() []byte {
	var shot struct{ Data []byte }
	c.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	return shot.Data
}
