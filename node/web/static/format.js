'use strict';
// Numbers and times as people read them.

// big writes an amount with three digits: 1.23M.
function big(x) {
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]) {
    if (x >= size) return String(Number((x / size).toPrecision(3))) + unit;
  }
  return x < 10 ? String(Number(x.toPrecision(2))) : String(Math.round(x));
}

// bytes writes an amount of bytes that a network carries, as every screen does.
function bytes(n) {
  if (n < 1000) return Math.round(n) + ' B';
  let unit = -1;
  while (n >= 1000 && unit < 4) { n /= 1000; unit++; }
  return (n >= 100 ? n.toFixed(0) : String(Number(n.toPrecision(3)))) + ' ' + 'kMGTP'[unit] + 'B';
}

// span writes seconds with at most two units.
function span(s) {
  s = Math.round(s);
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + (s % 60) + ' s';
  if (s < 172800) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' days';
}

function percent(x) {
  return (100 * x).toFixed(x > 0 && x < 0.0995 ? 1 : 0) + ' %';
}

// clock is the time of day of a moment, with the date if that is not the day of another.
function clock(ms, other) {
  const at = new Date(ms), time = at.toTimeString().slice(0, 8);
  return at.toDateString() === new Date(other).toDateString() ? time : at.toLocaleDateString('sv') + ' ' + time; // sv: 2026-03-04
}

function plural(n, one, many) {
  return n === 1 ? '1 ' + one : n + ' ' + many;
}
