'use strict';
// A flame graph on a canvas, only as much of it as can be seen.
const ROW = 18;
class Flame {
  constructor(box, app) {
    this.box = box; this.app = app; this.canvas = box.querySelector('canvas');
    this.spacer = document.createElement('div');
    box.append(this.spacer);
    this.grower = null; this.zoom = null; this.picked = null; this.rects = [];
    box.addEventListener('scroll', () => this.draw());
    this.canvas.addEventListener('mousemove', event => {
      const seen = this.at(event);
      this.canvas.title = seen ? app.describe(seen) : '';
    });
    this.canvas.addEventListener('click', event => {
      const seen = this.at(event);
      if (seen) { app.pick(this, seen); this.zoomTo(seen); }
    });
    box.addEventListener('keydown', event => this.key(event));
  }
  show(grower) { this.grower = grower; this.zoom = grower.root; this.picked = null; this.box.scrollTop = 0; this.draw(); }
  zoomTo(seen) { this.zoom = seen; this.draw(); this.app.remember(); }
  at(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const hit = this.rects.find(r => x >= r.x && x < r.x + r.w && y >= r.y && y < r.y + ROW);
    return hit ? hit.seen : null;
  }
  key(event) {
    const from = this.picked || this.zoom;
    let to = null;
    if (event.key === 'ArrowDown') to = this.grower.grow(from)[0];
    else if (event.key === 'ArrowUp') to = from.parent;
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      if (!from.parent) return;
      const row = this.grower.grow(from.parent);
      to = row[row.indexOf(from) + (event.key === 'ArrowLeft' ? -1 : 1)];
    } else if (event.key === 'Enter') { event.preventDefault(); this.zoomTo(from); return; }
    else return;
    event.preventDefault();
    if (!to) return;
    this.app.pick(this, to);
    const y = to.depth * ROW;
    if (y < this.box.scrollTop || y > this.box.scrollTop + this.box.clientHeight - ROW) this.box.scrollTop = y - this.box.clientHeight / 2;
    this.draw();
  }
  draw() {
    if (!this.grower || this.box.hidden) return;
    const width = this.box.clientWidth, height = this.box.clientHeight, scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale); this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = width + 'px'; this.canvas.style.height = height + 'px';
    }
    const pen = this.canvas.getContext('2d'), style = this.app.style;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
    this.rects = [];
    let deepest = 0;
    const top = this.box.scrollTop, visit = [];
    for (let up = this.zoom.parent; up; up = up.parent) this.rect(pen, style, up, 0, width, up.depth * ROW - top, true);
    visit.push([this.zoom, 0, width]);
    while (visit.length) {
      const [seen, x, w] = visit.pop(), y = seen.depth * ROW - top;
      if (seen.depth > deepest) deepest = seen.depth;
      if (y > -ROW && y < height) this.rect(pen, style, seen, x, w, y, false);
      if (seen.weight === 0) continue;
      let at = x;
      for (const child of this.grower.grow(seen)) {
        const wide = w * child.weight / seen.weight;
        // What is narrower than half a pixel, and all after it, which is narrower still, cannot be seen.
        if (wide < 0.5) break;
        visit.push([child, at, wide]);
        at += wide;
      }
    }
    this.spacer.style.height = Math.max(0, (deepest + 2) * ROW - height) + 'px';
  }
  rect(pen, style, seen, x, w, y, isAbove) {
    const { app } = this;
    pen.globalAlpha = isAbove ? 0.55 : 1;
    pen.fillStyle = app.hits && app.hits[seen.label] ? style.hit : app.colour(seen.label);
    pen.fillRect(x, y, Math.max(0.5, w - 0.6), ROW - 1);
    if (seen === this.picked) { pen.strokeStyle = style.pick; pen.lineWidth = 2; pen.strokeRect(x + 1, y + 1, Math.max(1, w - 2), ROW - 3); }
    if (w > 24) {
      pen.fillStyle = '#111';
      pen.fillText(fit(pen, app.name(seen.label), w - 8), x + 4, y + ROW / 2);
    }
    pen.globalAlpha = 1;
    this.rects.push({ seen, x, y, w });
  }
}

function fit(pen, text, width) {
  if (text.length > 400) text = text.slice(0, 200) + '...' + text.slice(-190);
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, middle) + '...').width <= width) low = middle; else high = middle - 1;
  }
  return low > 2 ? text.slice(0, low) + '...' : '';
}
