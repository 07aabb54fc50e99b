'use strict';
// The profile as arrays, and trees that are grown only where they can be seen.
class Model {
  constructor(data) {
    this.data = data;
    this.names = data.functions;
    this.parents = Uint32Array.from(data.parents);
    this.labels = Uint32Array.from(data.labels);
    this.nodes = this.parents.length;
    this.samples = data.samples.node.length;
    this.node = Uint32Array.from(data.samples.node);
    this.thread = Uint32Array.from(data.samples.thread);
    this.time = new Float64Array(this.samples);
    let at = 0;
    for (let i = 0; i < this.samples; i++) this.time[i] = at += data.samples.delta[i];
    data.samples = null;
    // Children of each node, side by side.
    this.first = new Uint32Array(this.nodes + 1);
    for (let i = 1; i < this.nodes; i++) this.first[this.parents[i] + 1]++;
    for (let i = 0; i < this.nodes; i++) this.first[i + 1] += this.first[i];
    const next = this.first.slice();
    this.children = new Uint32Array(Math.max(0, this.nodes - 1));
    for (let i = 1; i < this.nodes; i++) this.children[next[this.parents[i]]++] = i;
    this.own = new Uint32Array(this.nodes);
    this.total = new Uint32Array(this.nodes);
  }
  // Counts the samples of a thread (null: all) in a span of time (null: all).
  select(thread, span) {
    const { own, total, node, time, parents } = this;
    own.fill(0);
    for (let i = 0; i < this.samples; i++) {
      if (thread !== null && this.thread[i] !== thread) continue;
      if (span && (time[i] < span[0] || time[i] >= span[1])) continue;
      own[node[i]]++;
    }
    total.set(own);
    for (let i = this.nodes - 1; i > 0; i--) total[parents[i]] += total[i];
    this.functions = null;
  }
  // Self and total of each function; a recursive one is counted once a stack.
  functionCounts() {
    if (this.functions) return this.functions;
    const own = new Uint32Array(this.names.length), total = new Uint32Array(this.names.length);
    const open = new Uint32Array(this.names.length);
    const path = [];
    const visit = [];
    for (let c = this.first[0]; c < this.first[1]; c++) visit.push(this.children[c]);
    while (visit.length) {
      const node = visit.pop();
      while (path.length && path[path.length - 1] !== this.parents[node]) open[this.labels[path.pop()]]--;
      if (!this.total[node]) continue;
      const label = this.labels[node];
      own[label] += this.own[node];
      if (!open[label]) total[label] += this.total[node];
      open[label]++;
      path.push(node);
      for (let c = this.first[node]; c < this.first[node + 1]; c++) visit.push(this.children[c]);
    }
    return this.functions = { own, total };
  }
  // The nodes of a function that are not below another of it.
  outermost(label) {
    const found = [];
    for (let i = 1; i < this.nodes; i++) {
      if (this.labels[i] !== label || !this.total[i]) continue;
      let up = this.parents[i];
      while (up && this.labels[up] !== label) up = this.parents[up];
      if (!up) found.push(i);
    }
    return found;
  }
  // Samples whose stack has a function for which hits[label] is set.
  countHits(hits) {
    const inside = new Uint8Array(this.nodes);
    let count = 0;
    for (let i = 1; i < this.nodes; i++) {
      inside[i] = hits[this.labels[i]] | inside[this.parents[i]];
      if (inside[i]) count += this.own[i];
    }
    return count;
  }
}

// A node that is seen: several nodes of the profile under one label.
class Seen {
  constructor(label, parent) {
    this.label = label; this.parent = parent; this.depth = parent ? parent.depth + 1 : 0;
    this.weight = 0; this.nodes = []; this.weights = []; this.grown = null;
  }
  add(node, weight) { this.nodes.push(node); this.weights.push(weight); this.weight += weight; }
}

// Grows from callers to callees.
class Callees {
  constructor(model, label, nodes) {
    this.model = model;
    this.root = new Seen(label, null);
    for (const node of nodes) this.root.add(node, model.total[node]);
  }
  grow(seen) {
    if (seen.grown) return seen.grown;
    const { first, children, labels, total } = this.model;
    const by = new Map();
    for (const node of seen.nodes)
      for (let c = first[node]; c < first[node + 1]; c++) {
        const child = children[c];
        if (!total[child]) continue;
        let at = by.get(labels[child]);
        if (!at) by.set(labels[child], at = new Seen(labels[child], seen));
        at.add(child, total[child]);
      }
    return seen.grown = sorted(by);
  }
}

// Grows from callees to callers; `weightOf` tells what each start stands for.
class Callers {
  constructor(model, label, nodes, weightOf) {
    this.model = model;
    this.root = new Seen(label, null);
    for (const node of nodes) this.root.add(node, weightOf[node]);
    this.startsAtNode = label === null;
  }
  grow(seen) {
    if (seen.grown) return seen.grown;
    const { parents, labels } = this.model;
    const by = new Map();
    const here = this.startsAtNode && seen === this.root;
    for (let i = 0; i < seen.nodes.length; i++) {
      const up = here ? seen.nodes[i] : parents[seen.nodes[i]];
      if (!up) continue;
      let at = by.get(labels[up]);
      if (!at) by.set(labels[up], at = new Seen(labels[up], seen));
      at.add(up, seen.weights[i]);
    }
    return seen.grown = sorted(by);
  }
}

function sorted(by) { return [...by.values()].sort((a, b) => b.weight - a.weight || a.label - b.label); }
