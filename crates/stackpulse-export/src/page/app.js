'use strict';
// What is selected, and how it came to be: the part after # in the address says the same, so that it can be kept.
class App {
  constructor(data) {
    const by = id => document.getElementById(id);
    this.by = by;
    this.model = new Model(data);
    this.thread = null; this.span = null; this.reverse = false; this.centre = null; this.hits = null; this.order = 'own';
    this.readStyle();
    by('title').textContent = document.title = data.name;
    by('thread').append(new Option('all', ''));
    data.threads.slice(0, 2000).forEach((name, at) => by('thread').append(new Option(name, at)));
    this.flame = new Flame(by('flame'), this);
    this.callers = new Flame(by('callers'), this);
    this.axis = new Axis(by('time'), this);
    this.listen();
    this.restore();
  }
  readStyle() {
    const style = getComputedStyle(document.documentElement);
    const value = name => style.getPropertyValue('--' + name).trim();
    this.style = Object.fromEntries(['text', 'hit', 'loss', 'gap', 'bar', 'pick'].map(name => [name, value(name)]));
  }
  name(label) { return label === null ? 'all' : this.model.names[label]; }
  module(label) { return label === null ? '' : this.model.data.modules[this.model.data.module[label]]; }
  colour(label) {
    if (label === null) return '#b9bdc9';
    const mode = this.model.data.mode[label], spread = (label * 7919) % 29;
    if (mode === 'k') return `hsl(${20 + spread / 3} 75% ${62 + spread % 7}%)`;
    if (mode === 'j') return `hsl(${200 + spread / 2} 60% ${66 + spread % 7}%)`;
    if (mode === 'm') return '#a5a5ab';
    return `hsl(${40 + spread} 78% ${62 + spread % 9}%)`;
  }
  percent(count) { return (100 * count / Math.max(1, this.model.total[0])).toFixed(2) + ' %'; }
  describe(seen) {
    const module = this.module(seen.label);
    return `${this.name(seen.label)}${module ? '  [' + module + ']' : ''}: ${seen.weight} samples, ${this.percent(seen.weight)}`;
  }
  listen() {
    const by = this.by, media = matchMedia('(prefers-color-scheme: dark)');
    by('search').addEventListener('input', () => { this.search(by('search').value); this.remember(); });
    by('thread').addEventListener('change', () => { this.thread = by('thread').value === '' ? null : +by('thread').value; this.update(); });
    by('reverse').addEventListener('change', () => { this.reverse = by('reverse').checked; this.centre = null; this.update(); });
    by('sandwich').addEventListener('click', () => this.sandwich());
    by('reset').addEventListener('click', () => this.reset());
    by('help').addEventListener('click', () => this.help());
    by('by-own').addEventListener('click', () => { this.order = 'own'; this.table(); });
    by('by-total').addEventListener('click', () => { this.order = 'total'; this.table(); });
    by('functions').addEventListener('click', event => {
      const row = event.target.closest('tr');
      if (row) { this.chosen = +row.dataset.label; this.sandwich(); }
    });
    addEventListener('resize', () => this.draw());
    addEventListener('hashchange', () => { if (location.hash.slice(1) !== this.kept) this.restore(); });
    media.addEventListener('change', () => { this.readStyle(); this.draw(); });
    addEventListener('keydown', event => this.key(event));
  }
  key(event) {
    if (event.key === 'Escape') { this.by('search').blur(); this.back(); return; }
    if (event.target.matches('input[type=search], select') || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/') { event.preventDefault(); this.by('search').focus(); }
    else if (event.key === 's') this.sandwich();
    else if (event.key === 'r') { this.by('reverse').checked = this.reverse = !this.reverse; this.centre = null; this.update(); }
    else if (event.key === '?') this.help();
  }
  help() {
    const keys = this.by('keys');
    keys.hidden = !keys.hidden;
    this.by('help').setAttribute('aria-expanded', String(!keys.hidden));
    this.draw();
  }
  // Undoes the last of: zoom, callers and callees, time, search.
  back() {
    if (this.flame.zoom.parent) this.flame.zoomTo(this.flame.grower.root);
    else if (this.centre !== null) { this.centre = null; this.update(); }
    else if (this.span) this.selectTime(null);
    else { this.by('search').value = ''; this.search(''); this.remember(); }
  }
  reset() {
    this.thread = this.span = this.centre = this.hits = null; this.reverse = false;
    this.by('search').value = this.by('thread').value = ''; this.by('reverse').checked = false;
    this.update();
  }
  selectTime(span) { this.span = span; this.update(); }
  pick(flame, seen) {
    this.flame.picked = this.callers.picked = null;
    flame.picked = seen;
    this.chosen = seen.label;
    this.by('sandwich').disabled = seen.label === null;
    this.by('detail').textContent = this.describe(seen);
  }
  sandwich() {
    if (this.chosen === undefined || this.chosen === null) return;
    this.centre = this.chosen;
    this.update();
  }
  update() {
    this.model.select(this.thread, this.span);
    this.grow();
    this.search(this.by('search').value);
    this.table();
    this.draw();
    this.remember();
  }
  grow() {
    const { model } = this, isSandwich = this.centre !== null;
    this.by('callers').hidden = !isSandwich;
    if (isSandwich) {
      const nodes = model.outermost(this.centre);
      this.callers.show(new Callers(model, this.centre, nodes, model.total));
      this.flame.show(new Callees(model, this.centre, nodes));
    } else if (this.reverse) {
      const nodes = [];
      for (let i = 1; i < model.nodes; i++) if (model.own[i]) nodes.push(i);
      this.flame.show(new Callers(model, null, nodes, model.own));
    } else this.flame.show(new Callees(model, null, [0]));
  }
  search(text) {
    let test = null;
    this.hits = null;
    const pattern = /^\/(.+)\/(i?)$/.exec(text);
    try { if (pattern) { const regex = new RegExp(pattern[1], pattern[2]); test = name => regex.test(name); } } catch { test = () => false; }
    if (text && !test) { const low = text.toLowerCase(); test = name => name.toLowerCase().includes(low); }
    const { model } = this;
    let found = '';
    if (test) {
      this.hits = Uint8Array.from(model.names, name => test(name) ? 1 : 0);
      const count = model.countHits(this.hits);
      found = `; ${count} (${this.percent(count)}) match`;
    }
    const lost = model.data.lost ? `; ${model.data.lost} events lost` : '';
    this.by('status').textContent = `${model.total[0]} of ${model.samples} samples${found}${lost}`;
    this.flame.draw(); this.callers.draw();
  }
  table() {
    const counts = this.model.functionCounts(), by = counts[this.order], body = this.by('functions');
    const labels = [...counts.total.keys()].filter(label => counts.total[label]);
    labels.sort((a, b) => by[b] - by[a] || counts.total[b] - counts.total[a]);
    body.replaceChildren(...labels.slice(0, 200).map(label => {
      const row = document.createElement('tr');
      row.dataset.label = label;
      row.setAttribute('aria-selected', String(label === this.centre));
      for (const text of [this.percent(counts.own[label]), this.percent(counts.total[label]), this.name(label)]) {
        const cell = document.createElement('td');
        cell.textContent = text.length > 300 ? text.slice(0, 300) + '...' : text;
        row.append(cell);
      }
      row.title = `${this.name(label).slice(0, 2000)}  [${this.module(label)}]: self ${counts.own[label]}, total ${counts.total[label]}`;
      return row;
    }));
  }
  draw() { this.axis.draw(); this.flame.draw(); this.callers.draw(); }
  // Keeps what is selected in the address.
  remember() {
    const kept = new URLSearchParams();
    if (this.by('search').value) kept.set('search', this.by('search').value);
    if (this.thread !== null) kept.set('thread', this.thread);
    if (this.span) kept.set('time', this.span.map(at => (at / 1e6).toFixed(6)).join('-'));
    if (this.reverse) kept.set('reverse', 1);
    if (this.centre !== null) kept.set('function', this.name(this.centre).slice(0, 500));
    const path = [];
    for (let seen = this.flame.zoom; seen && seen.parent && path.length < 300; seen = seen.parent) path.unshift(seen.parent.grown.indexOf(seen));
    if (path.length) kept.set('zoom', path.join('.'));
    document.body.dataset.zoom = this.name(this.flame.zoom.label);
    document.body.dataset.zoomSamples = this.flame.zoom.weight;
    this.kept = kept.toString();
    try { history.replaceState(null, '', '#' + this.kept); } catch { /* Where the address is fixed, nothing is kept. */ }
  }
  restore() {
    const kept = new URLSearchParams(location.hash.slice(1)), by = this.by;
    by('search').value = kept.get('search') || '';
    const thread = kept.get('thread');
    this.thread = thread !== null && +thread < this.model.data.threads.length ? +thread : null;
    by('thread').value = this.thread === null ? '' : this.thread;
    const span = (kept.get('time') || '').split('-').map(at => +at * 1e6);
    this.span = span.length === 2 && span[0] < span[1] ? span : null;
    by('reverse').checked = this.reverse = kept.has('reverse');
    const label = kept.has('function') ? this.model.names.indexOf(kept.get('function')) : -1;
    this.centre = label < 0 ? null : label;
    this.update();
    if (kept.get('zoom')) {
      let seen = this.flame.zoom;
      for (const at of kept.get('zoom').split('.')) seen = this.flame.grower.grow(seen)[+at] || seen;
      this.pick(this.flame, seen);
      this.flame.zoomTo(seen);
    }
    document.body.dataset.ready = 'yes';
  }
}
window.app = new App(JSON.parse(document.getElementById('profile').textContent));
