package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// serve starts a page of a world.
// direct asks without a proxy, which the environment may name.
var direct = &http.Client{Transport: &http.Transport{}}

func serve(t *testing.T, addr string, w World) *Server {
	t.Helper()
	feed := NewFeed()
	feed.Offer(w)
	s, err := Serve(addr, feed, map[string]http.Handler{
		"/metrics": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

const loopback = "127.0.0.1:0"

// ask sends a request and returns the answer with its body.
func ask(t *testing.T, c *http.Client, method, url string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestPageIsServed(t *testing.T) {
	s := serve(t, loopback, fourNodes(false))
	if strings.Contains(s.URL(), "token") || s.Guarded() {
		t.Errorf("a page for this machine alone has the address %s", s.URL())
	}
	for path, want := range map[string]string{
		"": "<!doctype html>", "page.js": "'use strict'", "format.js": "function big", "picture.js": "function drawPicture", "page.css": ":root", "uplot.js": "uPlot", "uplot.css": ".uplot", "icon.svg": "<svg",
		"view": `"headline":"4 machines train`, "metrics": "metrics", "link": "atoll:57e73ea9",
	} {
		res, body := ask(t, direct, http.MethodGet, s.URL()+path, nil)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("/%s: %s, has %q: %v", path, res.Status, want, strings.Contains(body, want))
		}
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("/%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	if res, _ := ask(t, direct, http.MethodGet, s.URL()+"absent", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a path that is not there: %s", res.Status)
	}
}

// The page loads its own files and nothing else: no inline script or style, and no other host.
func TestPageAsksNobodyElse(t *testing.T) {
	for _, word := range []string{"'unsafe", "http:", "https:", "*", "data:"} {
		if strings.Contains(policy, word) {
			t.Errorf("the policy allows %s", word)
		}
	}
	for path, name := range files {
		b, err := static.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "uplot/") {
			continue
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "https://", " style=", "onclick="} {
			if strings.Contains(string(b), word) {
				t.Errorf("%s contains %q", path, word)
			}
		}
	}
}

// A site that has its own name resolve to this machine gets nothing from the page.
func TestOtherHostsAreRefused(t *testing.T) {
	s := serve(t, loopback, fourNodes(false))
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:7070": 200, "localhost:9": 200, "LOCALHOST": 200, "[::1]:7070": 200, "127.8.8.8": 200,
		"example.org": 421, "example.org:7070": 421, "127.0.0.1.example.org": 421, "192.0.2.1": 421, "0.0.0.0:7070": 421, "localhost.example.org": 421,
	} {
		res, body := ask(t, direct, http.MethodGet, s.URL()+"view", func(r *http.Request) { r.Host = host })
		if res.StatusCode != want || want != 200 && strings.Contains(body, "headline") {
			t.Errorf("as %s: %s, want %d", host, res.Status, want)
		}
	}
}

func TestPageOnlyShows(t *testing.T) {
	s := serve(t, loopback, fourNodes(false))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		if res, _ := ask(t, direct, method, s.URL()+"view", nil); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s", method, res.Status)
		}
	}
}

// Beyond this machine nothing is served without the token.
func TestTokenBeyondThisMachine(t *testing.T) {
	s := serve(t, "0.0.0.0:0", oneNode(trainingStatus(3)))
	if !s.Guarded() || len(s.token) < 26 {
		t.Fatalf("the token %q has less than 128 bits", s.token)
	}
	base, _, _ := strings.Cut(s.URL(), "?")
	if strings.Contains(base, "0.0.0.0") || strings.Contains(base, "[::]") {
		t.Errorf("nobody can open %s", base)
	}
	for name, change := range map[string]func(*http.Request){
		"nothing":         nil,
		"another token":   func(r *http.Request) { r.URL.RawQuery = "token=" + strings.Repeat("A", len(s.token)) },
		"no token":        func(r *http.Request) { r.URL.RawQuery = "token=" },
		"half":            func(r *http.Request) { r.URL.RawQuery = "token=" + s.token[:13] },
		"another cookie":  func(r *http.Request) { r.AddCookie(&http.Cookie{Name: s.cookieName(), Value: "x"}) },
		"token as cookie": func(r *http.Request) { r.AddCookie(&http.Cookie{Name: s.cookieName(), Value: s.token}) },
		"another bearer":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
	} {
		for path := range files {
			for _, path := range []string{strings.TrimSuffix(path, "{$}"), "/view", "/events", "/link", "/link.png", "/metrics", "/absent"} {
				if res, body := ask(t, direct, http.MethodGet, base+path[1:], change); res.StatusCode != http.StatusUnauthorized || strings.Contains(body, "opticks") || len(res.Cookies()) > 0 {
					t.Errorf("with %s %s: %s", name, path, res.Status)
				}
			}
		}
	}
	if res, body := ask(t, direct, http.MethodGet, base+"metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.token) }); res.StatusCode != 200 || body != "metrics" {
		t.Errorf("with the token as bearer: %s", res.Status)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	res, body := ask(t, browser, http.MethodGet, base+"?token="+s.token, nil)
	if res.StatusCode != 200 || !strings.Contains(body, "<!doctype html>") || len(res.Cookies()) != 1 {
		t.Fatalf("with the token: %s, cookies %v", res.Status, res.Cookies())
	}
	c := res.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Value == s.token {
		t.Errorf("the cookie is %v: want HttpOnly, SameSite=Strict, and not the token", c)
	}
	if res, body := ask(t, browser, http.MethodGet, base+"link", nil); res.StatusCode != 200 || !strings.Contains(body, "#secret-of-the-invite") {
		t.Errorf("with the cookie: %s %q", res.Status, body)
	}
}

func TestLinkAsPicture(t *testing.T) {
	s := serve(t, loopback, oneNode(trainingStatus(2)))
	res, body := ask(t, direct, http.MethodGet, s.URL()+"link.png", nil)
	picture, err := png.Decode(strings.NewReader(body))
	if err != nil || res.Header.Get("Content-Type") != "image/png" {
		t.Fatalf("%s, %v", res.Status, err)
	}
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		t.Fatal(err)
	}
	link, _ := s.feed.World().link()
	if got, err := qrcode.NewQRCodeReader().Decode(bitmap, nil); err != nil || got.GetText() != link {
		t.Errorf("a camera reads %v, %v: want %s", got, err, link)
	}
	s.feed.Offer(World{})
	for _, path := range []string{"link", "link.png"} {
		if res, body := ask(t, direct, http.MethodGet, s.URL()+path, nil); res.StatusCode != http.StatusNotFound || !strings.Contains(body, noLink) {
			t.Errorf("/%s of nobody: %s %q", path, res.Status, body)
		}
	}
}

// next reads the next view of a stream.
func next(t *testing.T, lines *bufio.Scanner) (v View) {
	t.Helper()
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return v
}

// stream opens a stream of views.
func openStream(t *testing.T, s *Server) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := direct.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %s", res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

func TestStream(t *testing.T) {
	s := serve(t, loopback, joiningWorld())
	one, two := openStream(t, s), openStream(t, s)
	if a, b := next(t, one), next(t, two); a.State != "joining" || b.State != "joining" {
		t.Errorf("first %s and %s", a.State, b.State)
	}
	s.feed.Offer(fourNodes(false))
	if a, b := next(t, one), next(t, two); a.State != "training" || b.State != "training" {
		t.Errorf("then %s and %s", a.State, b.State)
	}
}

func TestViewersAreBounded(t *testing.T) {
	s := serve(t, loopback, fourNodes(false))
	for range maxViewers {
		next(t, openStream(t, s))
	}
	res, body := ask(t, direct, http.MethodGet, s.URL()+"events", nil)
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "which is the most") {
		t.Errorf("one viewer more: %s %q", res.Status, body)
	}
	if res, _ := ask(t, direct, http.MethodGet, s.URL()+"view", nil); res.StatusCode != http.StatusOK {
		t.Errorf("a view beside the streams: %s", res.Status)
	}
}

// All viewers of a view share one encoding, and nothing is encoded without viewers.
func TestOneEncodingAView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed()
		for range 100 {
			f.Offer(fourNodes(false))
			time.Sleep(viewEvery / 10)
		}
		if f.made != 0 {
			t.Errorf("%d encodings while nobody looked", f.made)
		}
		for range 30 { // three seconds
			f.Offer(fourNodes(false))
			for range 5 {
				f.Encoded()
			}
			time.Sleep(viewEvery / 10)
		}
		if f.made != 3 {
			t.Errorf("%d encodings in 3 seconds with 5 viewers", f.made)
		}
	})
}

func TestBadAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"7070": "it is no address with a port", "127.0.0.1": "it is no address with a port", ":7070": "it names no host", "127.0.0.1:web": "is no port", "127.0.0.1:70000": "is no port", "": "it is no address with a port",
	} {
		if _, err := Serve(addr, NewFeed(), nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "127.0.0.1:") {
			t.Errorf("%q: %v; want %q and what to use", addr, err, want)
		}
	}
	s := serve(t, loopback, World{})
	if _, err := Serve(s.listener.Addr().String(), NewFeed(), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("an address that is taken: %v", err)
	}
}
