'use strict';
// The picture of who exchanges with whom: machines on a circle, a line for each connection.

const svgNames = 'http://www.w3.org/2000/svg';

function shape(name, attributes, text) {
  const e = document.createElementNS(svgNames, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  if (text !== undefined) e.textContent = text;
  return e;
}

const labelled = 14; // machines that a circle has room to name

function drawPicture(svg, view) {
  const n = view.peers.length, names = n <= labelled;
  const width = names ? 440 : 340, height = names ? 270 : 340;
  const radius = n === 1 ? 0 : names ? 95 : 145;
  const at = i => {
    const angle = 2 * Math.PI * i / n - Math.PI / 2;
    return [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)];
  };
  const parts = [];
  const faint = Math.max(0.18, Math.min(1, 40 / (view.links.length + 1)));
  for (const l of view.links) {
    const [x1, y1] = at(l.a), [x2, y2] = at(l.b);
    const line = shape('line', { x1, y1, x2, y2, class: l.kind, 'stroke-opacity': l.kind === 'direct' ? faint : Math.max(faint, 0.5) });
    line.append(shape('title', {}, view.peers[l.a].name + ' and ' + view.peers[l.b].name + ': ' + linkText(l.kind)));
    parts.push(line);
  }
  const most = names ? 15 : 9, least = names ? 7 : 5;
  view.peers.forEach((p, i) => {
    const [cx, cy] = at(i);
    const r = p.class === 'gone' || p.class === 'later' ? least : least + (most - least) * Math.sqrt(Math.min(1, p.share || 0));
    const node = shape('circle', { cx, cy, r, class: p.class + (p.self ? ' self' : '') });
    node.append(shape('title', {}, p.name + ': ' + p.state));
    parts.push(node);
    if (names) parts.push(label(p, cx, cy, r, width / 2));
  });
  svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
  svg.replaceChildren(...parts);
}

// label stands beside its machine, away from the centre.
function label(p, cx, cy, r, middle) {
  const side = cx > middle + 5 ? 'start' : cx < middle - 5 ? 'end' : 'middle';
  const x = side === 'start' ? cx + r + 6 : side === 'end' ? cx - r - 6 : cx;
  const y = side === 'middle' ? (cy < 135 ? cy - r - 7 : cy + r + 16) : cy + 4;
  const name = p.name.length > 14 ? p.name.slice(0, 13) + '\u2026' : p.name;
  return shape('text', { x, y, 'text-anchor': side }, p.self ? name + ' (this one)' : name);
}

function linkText(kind) {
  return { direct: 'direct', relayed: 'through a relay', punching: 'through a relay, tries a direct way', heard: 'hears it through others' }[kind] || '';
}

// drawLegend explains what is in the picture, and nothing else.
function drawLegend(list, view) {
  const items = [];
  for (const kind of ['direct', 'relayed', 'punching', 'heard']) {
    if (view.links.some(l => l.kind === kind)) items.push([shape('line', { x1: 1, y1: 6, x2: 25, y2: 6, class: kind }), linkText(kind)]);
  }
  const back = view.state === 'replay';
  const classes = { live: back ? 'has contributed' : 'takes part', later: 'not yet', done: 'took part to the end', rest: 'rests or only serves', silent: 'cannot be heard', gone: 'gone' };
  for (const [name, text] of Object.entries(classes)) {
    if (view.peers.some(p => p.class === name)) items.push([shape('circle', { cx: 13, cy: 6, r: 5, class: name }), text]);
  }
  list.replaceChildren(...items.map(([mark, text]) => {
    const item = document.createElement('li'), svg = shape('svg', { viewBox: '0 0 26 12', class: 'mark', 'aria-hidden': 'true' });
    svg.append(mark);
    item.append(svg, text);
    return item;
  }));
}

// pictureText says in words what the picture shows.
function pictureText(view) {
  if (view.peers.length === 1) return 'This machine is alone so far.';
  const count = kind => view.links.filter(l => l.kind === kind).length;
  const connections = view.links.length - count('heard');
  let text = plural(connections, 'connection', 'connections');
  if (connections) text += ', ' + (count('direct') === connections ? 'all direct' : count('direct') + ' direct');
  const relayed = count('relayed') + count('punching');
  if (relayed) text += ', ' + relayed + ' through relays';
  return text + '. A larger dot has contributed more.';
}
