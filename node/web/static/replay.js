'use strict';
// A replay: the view as it was when a round had closed, by what the ledger says.

// frameOf is the last view, taken back to a frame. What a ledger does not tell, such as links
// and speeds of machines, is left out.
function frameOf(view, frame) {
  const done = view.budget ? Math.min(1, frame.tokens / view.budget) : 0;
  const given = frame.by.filter(tokens => tokens > 0).length;
  const sum = frame.by.reduce((all, tokens) => all + tokens, 0) || 1;
  const curve = view.curve.filter(p => p.n <= frame.tokens);
  const measured = curve.filter(p => p.l).pop();
  const started = view.run.started_ms, at = frame.at_ms || 0;
  return {
    ...view, tone: 'good', state: 'replay', over: false, folded: frame.tokens, curve, alarms: [], account: [], links: [], per_s: (curve[curve.length - 1] || {}).r || 0, eta_s: 0, goodput: 0,
    headline: plural(given, 'machine has', 'machines have') + ' contributed to the model.',
    detail: Math.floor(100 * done) + ' % done' + (at ? ', ' + span((at - started) / 1000) + ' after the start.' : '.'),
    quality: { ...view.quality, value: measured ? measured.l : 0 },
    peers: view.peers.map((p, i) => ({
      id: p.id, name: p.name, self: p.self, hardware: p.hardware, learner: p.learner, share: frame.by[i] / sum,
      class: frame.by[i] ? 'live' : 'later', state: frame.by[i] ? 'has contributed' : 'not yet',
    })),
    rounds: frame.closed.map((closed, i) => ({ closed, contributors: frame.gave[i] })),
    events: at ? view.events.filter(e => e.at_ms <= at) : view.events,
    traffic: { sent: 0, received: 0 },
  };
}

const playMs = 80; // a frame: all of them take some twenty seconds

// replay puts the slider in charge of what the page shows.
function replay(view) {
  const slider = $('slider'), button = $('play');
  let timer = 0;
  const draw = () => render(frameOf(view, view.replay[slider.value]));
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    set(button, 'Play');
  };
  const step = () => {
    if (Number(slider.value) === view.replay.length - 1) return stop();
    slider.value = Number(slider.value) + 1;
    draw();
  };
  slider.max = view.replay.length - 1;
  slider.value = slider.max;
  slider.oninput = () => {
    stop();
    draw();
  };
  button.onclick = () => {
    if (timer) return stop();
    if (slider.value === slider.max) slider.value = 0;
    set(button, 'Pause');
    draw();
    timer = setInterval(step, playMs);
  };
  show('replay', true);
  document.body.classList.add('replaying');
  draw();
}
