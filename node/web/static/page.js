'use strict';
// The page renders views that Go made. Every text goes in as text: what a peer calls
// itself can never become markup.

const $ = id => document.getElementById(id);

// make is an element with a class and a text.
function make(name, kind, text) {
  const e = document.createElement(name);
  if (kind) e.className = kind;
  if (text !== undefined) e.textContent = text;
  return e;
}

// set changes a text only where it differs, so that a selection stays.
function set(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

function show(id, on) { $(id).hidden = !on; }

function render(view) {
  document.body.dataset.tone = view.tone;
  set($('name'), view.run.name || '');
  set($('state'), view.state);
  set($('headline'), view.headline);
  set($('detail'), view.detail || '');
  const known = view.run.id !== '';
  list('notes', (view.notes || []).map(text => make('li', '', text)));
  list('next', (view.next || []).map(row => {
    const e = make('li');
    e.append(make('code', '', row.name), ' ' + row.value);
    return e;
  }));
  renderBar(view, known);
  renderAlarms(view.alarms || []);
  show('tiles', known);
  if (known) renderTiles(view);
  show('curve-card', known);
  if (known) renderCurve(view);
  show('picture-card', view.peers.length > 0 && known);
  if (known) {
    drawPicture($('picture'), view);
    drawLegend($('legend'), view);
    set($('picture-title'), view.state === 'replay' ? 'Who has contributed' : 'Who exchanges with whom');
    set($('picture-says'), view.state === 'replay' ? 'A larger dot has contributed more. The ledger does not say who was connected.' : pictureText(view));
  }
  show('peers-card', view.peers.length > 0);
  renderPeers(view);
  renderRounds(view.rounds);
  renderAccount(view);
  renderEvents(view);
  show('join-card', view.can_join && !report);
  renderFacts(view, known);
}

// list fills a list, which is hidden while it is empty, and leaves it alone where nothing changes.
function list(id, items) {
  if ($(id).textContent !== items.map(e => e.textContent).join('')) $(id).replaceChildren(...items);
  show(id, items.length > 0);
}

function renderBar(view, known) {
  const done = view.budget ? Math.min(1, view.folded / view.budget) : 0;
  show('bar', known && view.budget > 0 && !view.not_yet);
  $('bar').firstElementChild.style.width = (100 * done) + '%';
  $('bar').setAttribute('aria-valuenow', Math.floor(100 * done));
  document.title = known ? Math.floor(100 * done) + ' % ' + (view.run.name || 'atoll') : 'atoll';
}

function renderAlarms(alarms) {
  show('alarms', alarms.length > 0);
  $('alarms').replaceChildren(...alarms.map(a => {
    const item = make('li');
    item.append(make('b', '', a.kind), (a.who ? ' (' + a.who + ')' : '') + ': ' + a.text + '; do: ' + a.remedy);
    return item;
  }));
}

function renderTiles(view) {
  const here = view.peers.filter(p => p.class === 'live').length;
  const q = view.quality || {}, over = view.over, back = view.state === 'replay';
  const tiles = [
    [q.own ? 'Training loss' : 'Held-out text', q.value ? q.value.toFixed(3) : 'not yet', q.value ? q.unit + ', less is better' : 'the first measurement comes soon'],
    over ? ['Speed', view.average ? big(view.average) : 'not known', 'tokens per second on average'] :
      ['Speed', view.per_s ? big(view.per_s) : 'not yet', 'tokens per second, all machines'],
    view.not_yet ? ['Tokens', 'not yet', view.not_yet] : ['Tokens', big(view.folded), 'of ' + big(view.budget) + ' are in the model'],
    back ? null : over ? ['Took', view.took_s ? span(view.took_s) : 'not known', view.late ? 'since this machine joined, to the last fold' : 'from the first start to the last fold'] :
      ['Time left', view.eta_s ? span(view.eta_s) : 'not known', 'at the speed of now'],
    over ? ['Machines', String(view.took_part), 'took part'] :
      ['Machines', String(here), back ? 'of ' + view.took_part + ' have contributed' : here === view.peers.length ? here === 1 ? 'trains alone so far' : 'train together' : here === 1 ? 'trains, ' + view.took_part + ' took part' : 'train, ' + view.took_part + ' took part'],
    back ? null : ['Goodput', view.goodput ? percent(view.goodput) : 'not yet', view.many ? 'of the machines\u2019 time is training' : 'of this machine\u2019s time is training'],
    back ? null : over ? ['Traffic', bytes(view.traffic.received), 'received, ' + bytes(view.traffic.sent) + ' sent'] :
      ['Traffic', rates(view.traffic), bytes(view.traffic.sent) + ' up, ' + bytes(view.traffic.received) + ' down'],
  ].filter(Boolean);
  const box = $('tiles');
  while (box.children.length < tiles.length) {
    const tile = make('div', 'tile');
    tile.append(make('div', 'label'), make('div', 'value'), make('div', 'more'));
    box.append(tile);
  }
  tiles.forEach((texts, i) => texts.forEach((text, k) => set(box.children[i].children[k], text)));
}

function rates(t) {
  if (!t.up_per_s && !t.down_per_s) return 'quiet';
  return bytes((t.up_per_s || 0) + (t.down_per_s || 0)) + '/s';
}

// The curve: loss on the left, tokens per second on the right.
let plot, plotted, byTime = false, lastView;

function renderCurve(view) {
  lastView = view;
  const q = view.quality || {};
  set($('curve-hint'), (q.own ? 'Loss of training here, ' : 'Held-out text, ') + (q.unit || 'bits per byte') + ': less is better. The faint line is the speed.');
  const points = view.curve, some = points.some(p => p.l);
  show('curve', some);
  show('curve-empty', !some);
  if (!some) return;
  const data = [points.map(p => byTime ? p.s : p.n), points.map(p => p.l || null), points.map(p => p.r || null)];
  if (!plot || plotted !== plotKey()) newPlot(data, q.unit);
  else plot.setData(data);
}

const fewPoints = 25; // a line through fewer measures shows where they are

// plotKey changes when the curve has to be made anew.
function plotKey() {
  return byTime + ' ' + $('curve').clientWidth + ' ' + darkness.matches;
}

function newPlot(data, unit) {
  if (plot) plot.destroy();
  const css = getComputedStyle(document.documentElement), color = name => css.getPropertyValue(name).trim();
  const width = $('curve').clientWidth, narrow = width < 460;
  const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line'), width: 1 }, font: '12px system-ui, sans-serif' };
  plot = new uPlot({
    width, height: narrow ? 220 : 290, cursor: { y: false }, scales: { x: { time: false }, speed: { range: (_, least, most) => [0, 1.15 * (most || 1)] } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map(t => byTime ? span(t) : big(t)), space: narrow ? 70 : 80 },
      { ...axis, size: 46 },
      { ...axis, side: 1, scale: 'speed', show: !narrow, grid: { show: false }, values: (_, ticks) => ticks.map(big), size: 52 },
    ],
    series: [
      { label: byTime ? 'time' : 'tokens', value: (_, v) => v == null ? '' : byTime ? span(v) : big(v) },
      { label: unit || 'loss', stroke: color('--accent'), width: 2.5, spanGaps: true, points: { show: u => u.data[1].filter(v => v != null).length < fewPoints, size: 6 }, value: (_, v) => v == null ? '' : v.toFixed(3) },
      { label: 'tokens/s', scale: 'speed', stroke: color('--second'), width: 1, alpha: 0.55, spanGaps: true, points: { show: false }, value: (_, v) => v == null ? '' : big(v) },
    ],
  }, data, $('curve'));
  plotted = plotKey();
}

function renderPeers(view) {
  set($('peers-title'), plural(view.peers.length, 'machine', 'machines'));
  const body = $('peers').tBodies[0];
  while (body.rows.length > view.peers.length) body.deleteRow(-1);
  while (body.rows.length < view.peers.length) body.append(peerRow());
  view.peers.forEach((p, i) => fillPeer(body.rows[i], p, view));
}

function peerRow() {
  const row = make('tr');
  for (const kind of ['', 'how', 'number', 'number', 'second', 'number second', 'number second whole']) row.append(make('td', kind));
  row.cells[0].append(make('bdi', 'who'), make('bdi', 'less'));
  row.cells[1].append(make('bdi'), make('bdi', 'less'));
  const bar = make('span', 'share');
  bar.append(make('span'));
  row.cells[3].append(make('span'), bar);
  return row;
}

function fillPeer(row, p, view) {
  row.dataset.class = p.class;
  const [who, what] = row.cells[0].children;
  set(who, p.name + (p.self ? ' (this one)' : ''));
  who.title = p.id;
  set(what, [p.name === p.id.slice(0, 10) ? '' : p.id.slice(0, 10), p.hardware, p.learner].filter(Boolean).join(' \u00b7 '));
  set(row.cells[1].children[0], p.state);
  set(row.cells[1].children[1], p.reason || '');
  set(row.cells[2], p.per_s ? big(p.per_s) : '\u2013');
  set(row.cells[3].children[0], p.unshared ? '\u2013' : percent(p.share || 0));
  row.cells[3].children[1].firstElementChild.style.width = (100 * Math.min(1, p.share || 0)) + '%';
  set(row.cells[4], reachedText(p, view));
  set(row.cells[5], p.self || view.many && !p.lag_s ? '\u2013' : p.lag_s ? span(p.lag_s) + ' ago' : '\u2013');
  set(row.cells[6], trafficText(p, view));
  row.cells[6].title = withIt(p, view) ? ['sent to it / received from it by this machine', uplinkText(p)].filter(Boolean).join('; its uplink: ') : '';
}

function reachedText(p, view) {
  if (view.state === 'replay') return '\u2013';
  if (p.self) return 'here';
  if (view.many) {
    const i = view.peers.indexOf(p), mine = view.links.filter(l => l.kind !== 'heard' && (l.a === i || l.b === i));
    return mine.length ? plural(mine.length, 'connection', 'connections') : 'by nobody';
  }
  if (p.link) return linkText(p.link);
  return p.class === 'live' ? linkText('heard') : '\u2013';
}

// withIt says whether what this machine and a peer have sent each other is known: on a page of one.
function withIt(p, view) {
  return !view.many && !p.self && (p.sent || p.received);
}

function trafficText(p, view) {
  if (p.up_per_s || p.down_per_s) return bytes(p.up_per_s || 0) + '/s / ' + bytes(p.down_per_s || 0) + '/s';
  if (withIt(p, view)) return bytes(p.sent || 0) + ' / ' + bytes(p.received || 0);
  return uplinkText(p) || '\u2013';
}

function uplinkText(p) {
  return p.up_most ? (p.full ? 'full at ' : 'up to ') + (8e-6 * p.up_most).toFixed(1) + ' Mbit/s' : '';
}

const closed = new Map(); // fragment: last round that was seen to close

function renderRounds(rounds) {
  show('rounds-card', rounds.length > 0);
  const box = $('rounds');
  while (box.children.length > rounds.length) box.lastElementChild.remove();
  while (box.children.length < rounds.length) {
    const cell = make('div', 'round');
    cell.append(make('b'), make('span'), make('span'));
    box.append(cell);
  }
  rounds.forEach((r, i) => {
    const cell = box.children[i];
    set(cell.children[0], String(r.closed));
    set(cell.children[1], 'fragment ' + i);
    set(cell.children[2], r.closed ? r.contributors + ' took part' : 'none closed');
    cell.classList.toggle('closed', closed.has(i) && closed.get(i) !== r.closed);
    closed.set(i, r.closed);
  });
}

function renderAccount(view) {
  const parts = view.account.map((part, i) => ({ ...part, color: 'p' + (i + 1) })).filter((part, i) => i === 0 || part.tokens >= 0.5);
  const sum = parts.reduce((all, part) => all + part.tokens, 0);
  show('account-card', view.account.length > 0 && view.trained > 0);
  set($('trained'), big(view.trained) + ' tokens were trained ' + (view.many ? 'by these machines' : 'by this machine') + '. All of them are accounted for:');
  $('parts').replaceChildren(...parts.map(part => {
    const piece = make('span', part.color);
    piece.style.width = (sum ? 100 * part.tokens / sum : 0) + '%';
    return piece;
  }));
  $('account').replaceChildren(...parts.map(part => {
    const line = make('div');
    const name = make('dt', '', part.name);
    name.prepend(make('i', part.color));
    line.append(name, make('dd', 'amount', big(part.tokens)), make('dd', 'means', part.means));
    return line;
  }));
}

let eventsShown = '';

function renderEvents(view) {
  const events = view.events;
  show('events-card', events.length > 0);
  const key = JSON.stringify(events);
  if (key === eventsShown) return; // a reader may have scrolled
  eventsShown = key;
  $('events').replaceChildren(...events.map(e => {
    const item = make('li'), text = make('bdi');
    text.append(make('b', '', e.kind), (e.who ? ' ' + e.who : '') + ': ' + e.text);
    item.append(make('time', '', clock(e.at_ms, view.at_ms)), text);
    return item;
  }));
}

function renderFacts(view, known) {
  if (!known) return set($('facts'), '');
  const facts = ['run ' + view.run.id.slice(0, 10), view.run.model, big(view.run.params) + ' parameters'];
  if (view.run.optimizer) facts.push(view.run.optimizer);
  if (view.run.h) facts.push('a delta every ' + view.run.h + ' steps');
  facts.push(view.run.version, 'as of ' + clock(view.at_ms, Date.now()));
  set($('facts'), facts.join(' \u00b7 '));
}

// How to join. The link may be a secret, so it comes when somebody asks.
async function reveal() {
  const answer = await fetch('/link');
  const [text, letsIn] = (await answer.text()).trim().split('\n');
  set($('command'), answer.ok ? (lastView.join || 'atoll join LINK').replace('LINK', () => text) : text);
  show('join', true);
  show('join-ask', false);
  show('copy', answer.ok);
  if (!answer.ok) return;
  if (letsIn) set($('join-hint'), 'Install atoll there and run this command. Of the link: ' + letsIn);
  $('qr').onload = () => show('qr', true);
  $('qr').src = '/link.png';
}

async function copy() {
  try {
    await navigator.clipboard.writeText($('command').textContent);
    set($('copied'), 'copied');
  } catch { // browsers copy for pages of this machine and of TLS alone
    getSelection().selectAllChildren($('command'));
    set($('copied'), 'selected: copy it with your keyboard');
  }
}

function redraw() {
  if (lastView && plotted !== plotKey()) renderCurve(lastView);
}

function choose(time) {
  byTime = time;
  $('by-time').setAttribute('aria-pressed', time);
  $('by-tokens').setAttribute('aria-pressed', !time);
  redraw();
}

const retryMs = 5000; // after an answer that is no stream, such as that of too many viewers

// listen renders views as they come. The browser itself connects again after a cut.
function listen() {
  const source = new EventSource('/events');
  source.onmessage = message => {
    show('lost', false);
    render(JSON.parse(message.data));
  };
  source.onerror = () => {
    const at = lastView ? ' This is how it was at ' + clock(lastView.at_ms, Date.now()) + '.' : '';
    const over = lastView && lastView.state === 'finished';
    set($('lost'), (over ? 'The run is over, and its node has ended.' : 'The node does not answer: it has ended, or the way to it is cut.') + at);
    show('lost', true);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, retryMs);
  };
}

// renderReport adds what a report of a run has besides.
function renderReport(view) {
  $('sections').replaceChildren(...view.sections.map(section => {
    const card = make('section', 'card full'), list = make('dl', 'rows');
    list.append(...section.rows.map(row => {
      const line = make('div');
      line.append(make('dt', '', row.name), make('dd', '', row.value));
      return line;
    }));
    card.append(make('h2', '', section.title), list);
    return card;
  }));
  show('text-card', Boolean(view.card));
  set($('text'), view.card || '');
}

const darkness = matchMedia('(prefers-color-scheme: dark)');
const report = $('data');
darkness.addEventListener('change', redraw);
addEventListener('resize', redraw);
$('by-time').onclick = () => choose(true);
$('by-tokens').onclick = () => choose(false);
$('reveal').onclick = reveal;
$('copy').onclick = copy;
if (report) {
  const view = JSON.parse(report.textContent);
  document.body.classList.add('report');
  renderReport(view);
  if (view.replay) replay(view);
  else render(view);
} else {
  if (location.search) history.replaceState(null, '', '/'); // the token stays out of the history
  listen();
}
