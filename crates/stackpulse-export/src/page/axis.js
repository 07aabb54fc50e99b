'use strict';
// Samples over time, with losses and gaps, and a part of the time that can be selected.
class Axis {
  constructor(canvas, app) {
    this.canvas = canvas; this.app = app;
    const end = app.model.samples ? app.model.time[app.model.samples - 1] : 0;
    this.length = Math.max(app.model.data.duration, end + 1, 1);
    let from = null;
    const time = event => Math.min(1, Math.max(0, (event.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth)) * this.length;
    canvas.addEventListener('pointerdown', event => { from = time(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener('pointermove', event => {
      const mark = this.markAt(time(event));
      canvas.title = mark ? mark[2] : (time(event) / 1e6).toFixed(3) + ' s';
      if (from !== null) this.draw([Math.min(from, time(event)), Math.max(from, time(event))]);
    });
    canvas.addEventListener('pointerup', event => {
      if (from === null) return;
      const to = time(event), span = [Math.min(from, to), Math.max(from, to)];
      from = null;
      app.selectTime(span[1] - span[0] < this.length / 300 ? null : span);
    });
    canvas.addEventListener('keydown', event => {
      if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
      event.preventDefault();
      const step = this.length / 50 * (event.key === 'ArrowLeft' ? -1 : 1), span = app.span || [0, this.length];
      const moved = event.shiftKey ? [span[0], span[1] + step] : [span[0] + step, span[1] + (app.span ? step : 0)];
      const cut = [Math.max(0, moved[0]), Math.min(this.length, moved[1])];
      if (cut[1] - cut[0] > this.length / 300) app.selectTime(cut);
    });
  }
  markAt(time) { return this.app.model.data.marks.find(mark => time >= mark[0] - this.length / 300 && time <= mark[1] + this.length / 300); }
  draw(span = this.app.span) {
    const { canvas, app } = this, { model, style } = app, scale = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const bins = new Uint32Array(Math.max(1, Math.ceil(width / 2)));
    let most = 1;
    for (let i = 0; i < model.samples; i++) {
      if (app.thread !== null && model.thread[i] !== app.thread) continue;
      const bin = Math.min(bins.length - 1, Math.floor(model.time[i] / this.length * bins.length));
      if (++bins[bin] > most) most = bins[bin];
    }
    pen.fillStyle = style.bar;
    for (let i = 0; i < bins.length; i++) {
      const tall = bins[i] / most * (height - 16);
      pen.fillRect(i * 2, height - tall, 1.6, tall);
    }
    for (const [from, to, , isLoss] of model.data.marks) {
      pen.fillStyle = isLoss ? style.loss : style.gap;
      pen.fillRect(from / this.length * width, 0, Math.max(2, (to - from) / this.length * width), height);
    }
    pen.fillStyle = style.text; pen.font = '10px system-ui, sans-serif';
    for (let i = 0; i < 8; i++) pen.fillText((i / 8 * this.length / 1e6).toPrecision(3) + ' s', i / 8 * width + 2, 10);
    if (span) {
      pen.fillStyle = style.pick; pen.globalAlpha = 0.25;
      pen.fillRect(span[0] / this.length * width, 0, Math.max(1, (span[1] - span[0]) / this.length * width), height);
      pen.globalAlpha = 1;
    }
  }
}
