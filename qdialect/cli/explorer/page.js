"use strict";
// One selection everywhere: a kernel call, or a node that no kernel computes. `location.hash` names it.
const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, ops, calls, kernels, regions, summary } = data;
const at = id => document.getElementById(id);
const total = summary.seconds || 0;
const us = seconds => (seconds * 1e6).toFixed(2) + " us";
const percent = share => (100 * share).toFixed(1) + " %";
const tail = (text, most) => text.length > most ? "…" + text.slice(1 - most) : text;
const short = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

function make(tag, attributes = {}, ...children) {
  const svg = /^(g|rect|text|path|svg)$/.test(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

// Which kernel a node or an op is shown with: the call that takes longest, or the last.
function mainCall(numbers) {
  return numbers.reduce((best, one) => best === null || (calls[one].seconds ?? one) >= (calls[best].seconds ?? best) ? one : best, null);
}
const owners = { before: nodes.map(node => mainCall(node.calls)), after: ops.map(op => mainCall(op.calls)) };

// Texts of kernels are compressed, and are needed when one is chosen.
let unpacked = null;
const texts = () => unpacked ??= (async () => {
  const raw = atob(at("texts").textContent), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
})();

// Graphs.
const producers = new Map();
nodes.forEach(node => node.outputs.forEach(name => producers.set(name, node.id)));
const isForeign = item => item.region !== null && regions[item.region] && !regions[item.region].compiled;
const graphs = {
  before: {
    items: nodes, reads: node => [...new Set(node.inputs.filter(name => producers.has(name)).map(name => producers.get(name)))],
    label: node => node.kind.replace(/\.default$/, "").replace(/^[a-z_]+\.(?=[a-z_])/, ""), sub: tensor,
  },
  after: { items: ops, reads: op => op.reads, label: op => op.name.replace("qnn.", ""), sub: op => op.stages.length ? "then " + op.stages.join(", ") : op.type.replace(/^tensor<|>$/g, "") },
};
function tensor(node) {
  return (node.outputs[0] || node.title).split(";")[0].slice(tensor.start ??= folder(nodes.map(one => (one.outputs[0] || one.title).split(";")[0])));
}
// The length of the folders that all names begin with.
function folder(names) {
  const sorted = [...names].sort(), first = sorted[0] || "", last = sorted[sorted.length - 1] || "";
  let same = 0;
  while (same < first.length && first[same] === last[same]) same++;
  return first.lastIndexOf("/", same - 1) + 1;
}
const WIDTH = 172, HEIGHT = 34;

function draw(name) {
  const { items, reads, label, sub } = graphs[name], svg = at(name);
  const groups = new Map();
  if (name === "before") for (const item of items) {
    const key = isForeign(item) ? "region" + item.region : owners.before[item.id] === null ? null : "call" + owners.before[item.id];
    if (key) groups.set(key, [...(groups.get(key) || []), item.id]);
  }
  const shown = new Map([...groups].filter(([, members]) => members.length > 1));
  const isCompound = items.length <= 600;
  const build = compound => {
    const graph = new dagre.graphlib.Graph({ compound }).setGraph({ nodesep: 14, ranksep: 20, marginx: 10, marginy: 10 }).setDefaultEdgeLabel(() => ({}));
    for (const item of items) graph.setNode("n" + item.id, { width: WIDTH, height: HEIGHT });
    for (const item of items) for (const read of reads(item)) if (read !== item.id) graph.setEdge("n" + read, "n" + item.id);
    if (compound) for (const [key, members] of shown) { graph.setNode(key, {}); members.forEach(id => graph.setParent("n" + id, key)); }
    dagre.layout(graph);
    return graph;
  };
  let graph;
  try { graph = build(isCompound && shown.size > 0); } catch { graph = build(false); }
  const world = make("g");
  for (const [key, members] of shown) {
    const boxes = members.map(id => graph.node("n" + id)), pad = 6;
    const left = Math.min(...boxes.map(b => b.x - WIDTH / 2)) - pad, top = Math.min(...boxes.map(b => b.y - HEIGHT / 2)) - pad;
    const right = Math.max(...boxes.map(b => b.x + WIDTH / 2)) + pad, bottom = Math.max(...boxes.map(b => b.y + HEIGHT / 2)) + pad;
    world.append(make("rect", { class: "group" + (key.startsWith("region") ? " foreign" : ""), x: left, y: top, width: right - left, height: bottom - top, rx: 6 }));
  }
  for (const { v, w } of graph.edges()) {
    const points = graph.edge(v, w).points;
    world.append(make("path", { class: "edge", d: "M" + points.map(p => p.x.toFixed(1) + " " + p.y.toFixed(1)).join("L") }));
  }
  const most = Math.max(...calls.map(call => call.seconds || 0), 1e-12);
  for (const item of items) {
    const { x, y } = graph.node("n" + item.id), owner = owners[name][item.id];
    const box = make("g", {
      class: "box" + (isForeign(item) ? " foreign" : "") + (owner === null ? " none" : ""), tabindex: 0, role: "button",
      transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})`, "data-id": item.id,
      onclick: () => pick(name, item.id), onkeydown: event => { if (event.key === "Enter") pick(name, item.id); },
    }, make("rect", { width: WIDTH, height: HEIGHT, rx: 4 }));
    if (owner !== null && calls[owner].seconds) box.append(make("rect", { class: "heat", y: HEIGHT - 3, height: 3, width: Math.max(1, WIDTH * calls[owner].seconds / most) }));
    box.append(make("text", { x: 6, y: 13 }, short(label(item), 26)), make("text", { x: 6, y: 26, class: "sub" }, tail(sub(item), 26)));
    world.append(box);
  }
  svg.replaceChildren(world);
  const size = graph.graph(), view = { x: 0, y: 0, scale: 1 };
  const show = () => world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const fit = isAll => {
    const width = svg.clientWidth || 300, most = width / size.width;
    // Of a wide graph the beginning, in letters that can be read; a double click shows all of it.
    view.scale = Math.min(1.1, isAll ? most : Math.max(0.75, most));
    const middle = view.scale > most && items.length ? graph.node("n" + items[0].id).x : size.width / 2;
    view.x = width / 2 - middle * view.scale; view.y = 0; show();
  };
  svg.onwheel = event => {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * 0.0015), box = svg.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    view.x = px - (px - view.x) * factor; view.y = py - (py - view.y) * factor; view.scale *= factor; show();
  };
  let held = null;
  svg.onpointerdown = event => { held = { x: event.clientX - view.x, y: event.clientY - view.y }; };
  svg.onpointermove = event => { if (held && event.buttons) { view.x = event.clientX - held.x; view.y = event.clientY - held.y; show(); } };
  svg.onpointerup = svg.onpointerleave = () => { held = null; };
  svg.ondblclick = () => fit(true);
  fit(false);
  graphs[name].center = ids => {
    const found = ids.map(id => graph.node("n" + id)), xs = found.map(node => node.x), least = Math.min(...xs), most = Math.max(...xs);
    if (view.scale < 0.55) view.scale = 0.8;
    const fits = (most - least + WIDTH) * view.scale <= svg.clientWidth;
    const wanted = svg.clientWidth / 2 - (fits ? (least + most) / 2 : found[0].x) * view.scale;
    // What has room is shown whole.
    const spare = svg.clientWidth - size.width * view.scale;
    view.x = spare > 0 ? spare / 2 : Math.max(spare, Math.min(0, wanted));
    view.y = svg.clientHeight / 2 - found[0].y * view.scale; show();
  };
}

// Selection.
let chosen = { call: null, node: null, op: null };
function pick(graph, id) {
  const owner = owners[graph][id];
  const only = graph === "before" ? { node: id } : { op: id };
  select(owner === null ? { call: null, node: null, op: null, ...only } : { call: owner, node: null, op: null, ...only }, graph);
}
function select(next, from) {
  chosen = { call: null, node: null, op: null, ...next };
  const { call, node, op } = chosen;
  mark("before", item => call !== null ? item.calls.includes(call) : item.id === node, from);
  mark("after", item => call !== null ? item.calls.includes(call) : item.id === op, from);
  at("strip").childNodes.forEach((part, number) => part.classList.toggle("on", number === call));
  const hash = call !== null ? hashOf(call) : node !== null ? "#node=" + node : op !== null ? "#op=" + op : "#";
  if (location.hash !== hash && !(hash === "#" && !location.hash)) history.replaceState(null, "", hash);
  if (call !== null) showCall(call); else if (node !== null) showNode(nodes[node]); else if (op !== null) showOp(ops[op]); else showAll();
}
function mark(name, isOn, from) {
  const found = [];
  at(name).querySelectorAll(".box").forEach(box => {
    const on = isOn(graphs[name].items[+box.dataset.id]);
    box.classList.toggle("on", on);
    if (on) found.push(+box.dataset.id);
  });
  if (found.length && from !== name) graphs[name].center(found);
}
function hashOf(number) {
  const name = calls[number].kernel, first = calls.findIndex(call => call.kernel === name);
  return "#kernel=" + encodeURIComponent(name) + (first === number ? "" : "&call=" + number);
}
function readHash() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = wanted.has("call") ? +wanted.get("call") : calls.findIndex(call => call.kernel === wanted.get("kernel"));
  if (calls[number]) select({ call: number });
  else if (nodes[wanted.get("node")]) pick("before", +wanted.get("node"));
  else if (ops[wanted.get("op")]) pick("after", +wanted.get("op"));
  else select({});
}

// Details.
const link = (text, go) => make("a", { class: "link", tabindex: 0, onclick: go, onkeydown: event => { if (event.key === "Enter") go(); } }, text);
const callLink = number => link(`#${number} ${calls[number].title}`, () => select({ call: number }));
const fact = (name, value) => value === null || value === undefined ? null : make("span", {}, name + " ", make("b", {}, value));
function bars(rows, best) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  return make("div", { class: "bars" }, ...rows.flatMap(([name, value, shown]) => [
    make("span", { class: name === best ? "best" : "" }, name),
    make("i", {}, make("i", { style: `width:${Math.max(0.5, 100 * value / most)}%` })),
    make("span", { class: name === best ? "best" : "soft" }, shown ?? value.toFixed(0)),
  ]));
}
function part(title, rows, best, note) {
  return rows.length ? make("div", {}, make("h3", {}, title), bars(rows, best), note ? make("p", { class: "soft" }, note) : null) : null;
}
const fill = (...parts) => { at("details").replaceChildren(...parts.filter(Boolean)); at("details").scrollTop = 0; };

function showAll() {
  const isMeasured = total > 0;
  const rows = calls.map(call => [call.id, call.title, call.label, ...(isMeasured ? [call.seconds, call.seconds / total] : []), call.macs / 1e6, ...(isMeasured ? [call.peak, call.bound] : [])]);
  const header = ["#", "node", "op", ...(isMeasured ? ["time us", "of call"] : []), "MMAC", ...(isMeasured ? ["of peak", "of bound"] : [])];
  const numbers = new Set(["#", "time us", "of call", "MMAC", "of peak", "of bound"]);
  const text = (name, value) => value === null || value === undefined ? "-" : name === "time us" ? (value * 1e6).toFixed(2) : name.startsWith("of ") ? percent(value) : name === "MMAC" ? (value ? value.toFixed(3) : "-") : String(value);
  const body = make("tbody");
  const fillBody = order => body.replaceChildren(...order.map(row => make("tr", { onclick: () => select({ call: row[0] }) },
    ...row.map((value, column) => make("td", { class: numbers.has(header[column]) ? "n" : "" }, text(header[column], value))))));
  let last = null;
  const sort = column => {
    const order = [...rows].sort((a, b) => numbers.has(header[column]) ? (b[column] ?? -1) - (a[column] ?? -1) : String(a[column]).localeCompare(b[column]));
    last = last === column ? null : column;
    fillBody(last === null ? order.reverse() : order);
  };
  fillBody(rows);
  const foreign = regions.filter(region => !region.compiled);
  fill(make("h1", {}, data.title), make("div", { class: "facts" }, fact("target", data.target), fact("nodes", nodes.length), fact("fused ops", ops.length), fact("kernel calls", calls.length), fact("kernels", Object.keys(kernels).length)),
    ...regions.map((region, number) => make("p", { class: region.compiled ? "soft" : "" }, `region ${number}: ${region.runner}`, ...Object.entries(region.reasons).map(([title, reason]) => make("div", {}, `${title}: ${reason}`)))),
    foreign.length ? make("p", { class: "soft" }, "Red nodes are run by the model's framework.") : null,
    make("table", { id: "calls" }, make("thead", {}, make("tr", {}, ...header.map((name, column) => make("th", { class: "sort" + (numbers.has(name) ? " n" : ""), onclick: () => sort(column) }, name)))), body));
}

function showNode(node) {
  const region = node.region === null ? null : regions[node.region];
  const reason = region && region.reasons[node.title];
  const why = region && !region.compiled ? `run by ${region.runner}` + (reason ? `: ${reason}` : "") : node.within ? `part of ${node.within}` : "no kernel: known while compiling, or a view of what is there";
  fill(make("h1", {}, node.title), make("p", {}, why), make("p", { class: "soft" }, "became " + (node.ops.join(", ") || "nothing of its own")));
}
function showOp(op) {
  const why = isForeign(op) ? `run by the model's framework, region ${op.region}` : "no kernel: known while compiling, or a view of what is there";
  fill(make("h1", {}, op.name), make("p", { class: "soft" }, why), make("pre", {}, op.text));
}

async function showCall(number) {
  const call = calls[number], kernel = kernels[call.kernel];
  const same = calls.filter(other => other.kernel === call.kernel && other.id !== number);
  const own = nodes.filter(node => node.calls.includes(number));
  const fused = ops.filter(one => one.calls.includes(number)).map(one => one.text).join("\n");
  const rate = call.seconds ? (call.macs / call.seconds / 1e9).toFixed(1) + " GMAC/s" : null;
  const times = [["measured", call.seconds], ["predicted", call.predicted], ["bound", call.bound == null ? null : call.bound * call.seconds]].filter(([, value]) => value);
  const tile = kernel.tile && Object.entries(kernel.tile.cycles);
  const columns = make("div", { class: "columns" });
  fill(make("h1", {}, call.kernel), make("p", { class: "soft" }, `call #${number}: ${call.label}` + (call.region === null ? "" : `, region ${call.region}`)),
    make("div", { class: "facts" },
      fact("time", call.seconds ? us(call.seconds) : null), fact("of call", call.seconds ? percent(call.seconds / total) : null), fact("MMAC", call.macs ? (call.macs / 1e6).toFixed(3) : null), fact("rate", call.macs ? rate : null),
      fact("of " + (call.loop || "peak"), call.peak == null ? null : percent(call.peak)), fact("of bound", call.bound == null ? null : percent(call.bound)), fact("bytes", call.bytes), fact("instructions", kernel.instructions || null)),
    make("h3", {}, "Nodes"), own.length ? make("div", {}, ...own.map(node => make("div", {}, `${node.kind} ${(node.outputs[0] || node.title).split(";")[0]}`))) : make("div", { class: "soft" }, call.nodes.join(", ") || "none"),
    same.length ? make("h3", {}, "Calls of the same kernel") : null, same.length ? make("div", {}, ...same.flatMap(other => [callLink(other.id), " · "]).slice(0, -1)) : null,
    make("div", { class: "row" }, part("Time", times.map(([name, value]) => [name, value, us(value)])),
      tile ? part("Tile: " + kernel.tile.own, tile.map(([name, cycles]) => [name, cycles, cycles.toFixed(0) + " cycles"]), kernel.tile.own,
        "chosen by the cost model; then what it ranks next, with cycles by the model of the core (qdialect-run --tune measures). " + kernel.tile.kernel) : null,
      part("Bound: cycles that each port is busy", Object.entries(kernel.resources).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1])),
      part("Hot loop: instructions", Object.entries(kernel.loop).slice(0, 10), null, Object.keys(kernel.loop).length > 10 ? `${Object.values(kernel.loop).reduce((a, b) => a + b)} in all` : null)),
    make("h3", {}, "Phases: green is what the last step brought"), columns);
  const found = (await texts())[call.kernel];
  if (chosen.call !== number || !found) return;
  let before = null;
  for (const [name, text] of [["fused", fused], ["linalg", found.linalg], ["vector", found.vector], ["x86", found.x86], ["llvm", found.llvm], ["hot loop", found.loop], ["assembly", found.asm]]) {
    if (!text) continue;
    const isCode = name === "hot loop" || name === "assembly";
    columns.append(column(name, text, isCode ? "" : before, name === "llvm" || name === "assembly"));
    if (!isCode) before = text;
  }
}

// What a phase has that the one before it lacks, line by line, whatever values are called.
const bare = line => line.trim().replace(/%[\w#:]+/g, "%").replace(/\bloc\(.*\)/, "");
const opOf = line => (line.match(/(?:=\s*|^\s*)"?((?:[a-z]\w*\.)+\w+)/) || [])[1];
function counts(lines, key) {
  const found = new Map();
  for (const line of lines) { const name = key(line); if (name) found.set(name, (found.get(name) || 0) + 1); }
  return found;
}
const MOST = 3000;
function column(name, text, before, isShut) {
  const lines = text.split("\n"), pre = make("pre"), known = !before ? null : counts(before.split("\n"), bare);
  let delta = "";
  if (known) {
    const now = counts(lines, opOf), then = counts(before.split("\n"), opOf), parts = [];
    for (const one of new Set([...now.keys(), ...then.keys()])) {
      const change = (now.get(one) || 0) - (then.get(one) || 0);
      if (change) parts.push([change, one]);
    }
    parts.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    delta = parts.map(([change, one]) => (change > 0 ? "+" : "−") + Math.abs(change) + " " + one).join(", ");
  }
  for (const line of lines.slice(0, MOST)) {
    const key = bare(line), left = known ? known.get(key) || 0 : 1;
    if (known && left) known.set(key, left - 1);
    pre.append(left || !key || /^[}{)]+$/.test(key) ? document.createTextNode(line) : make("mark", {}, line), "\n");
  }
  if (lines.length > MOST) pre.append(`… ${lines.length - MOST} more lines`);
  const box = make("div", { class: "column" + (isShut ? " shut" : "") });
  if (before === null) box.classList.add("wrapped");
  box.append(make("h4", { tabindex: 0, title: "open or shut", onclick: () => box.classList.toggle("shut"), onkeydown: event => { if (event.key === "Enter") box.classList.toggle("shut"); } }, `${name} (${lines.length})`),
    make("div", { class: "delta" }, delta), pre);
  return box;
}

// Search.
const index = [
  ...calls.map(call => ({ text: `#${call.id} ${call.kernel} ${call.label} ${call.nodes.join(" ")}`, shown: `#${call.id} ${call.kernel} · ${call.label}`, go: () => select({ call: call.id }) })),
  ...nodes.map(node => ({ text: node.title, shown: short(node.title, 110), go: () => pick("before", node.id) })),
  ...ops.map(op => ({ text: `${op.name} ${op.stages.join(" ")} ${op.nodes.join(" ")}`, shown: short(`${op.name} ${op.nodes.join(", ")}`, 110), go: () => pick("after", op.id) })),
];
let hits = [], hit = 0;
function search() {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  hits = words.length ? index.filter(entry => words.every(word => entry.text.toLowerCase().includes(word))).slice(0, 40) : [];
  hit = 0;
  showHits();
}
function showHits() {
  const isAsked = at("search").value.trim() !== "";
  at("hits").hidden = !isAsked;
  if (isAsked && !hits.length) return at("hits").replaceChildren(make("li", { class: "soft" }, "nothing has this in its name"));
  at("hits").replaceChildren(...hits.map((entry, number) => make("li", { class: number === hit ? "on" : "", onmousedown: () => take(entry) }, entry.shown)));
}
function take(entry) { entry.go(); at("search").value = ""; hits = []; showHits(); at("search").blur(); }
at("search").oninput = search;
at("search").onblur = () => { at("hits").hidden = true; };
at("search").onkeydown = event => {
  if (event.key === "Enter" && hits[hit]) take(hits[hit]);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") { hit = Math.min(Math.max(hit + (event.key === "ArrowDown" ? 1 : -1), 0), hits.length - 1); showHits(); event.preventDefault(); }
  else if (event.key === "Escape") at("search").blur();
  event.stopPropagation();
};

// Keys and themes.
const byTime = calls.map(call => call.id).sort((a, b) => (calls[b].seconds || 0) - (calls[a].seconds || 0));
function step(order, by) {
  const place = order.indexOf(chosen.call);
  if (order.length) select({ call: order[place < 0 ? 0 : Math.min(Math.max(place + by, 0), order.length - 1)] });
}
const flip = () => document.documentElement.classList.toggle("dark");
const everyCall = calls.map(call => call.id);
const KEYS = { "/": () => at("search").focus(), j: () => step(everyCall, 1), k: () => step(everyCall, -1), n: () => step(byTime, 1), p: () => step(byTime, -1), t: flip, Escape: () => select({}), "?": () => at("keys").showModal() };
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
at("theme").onclick = flip;
at("overview").onclick = () => select({});
at("help").onclick = () => at("keys").showModal();
if (matchMedia("(prefers-color-scheme: dark)").matches) flip();

at("title").textContent = data.title;
at("about").textContent = [data.target, total ? `${us(total)} in ${calls.length} kernel calls` : `${calls.length} kernel calls`, `${(summary.macs / 1e6).toFixed(1)} MMAC`,
  summary.peak && total ? `${percent(Math.min(1, summary.macs / total / summary.peak))} of bare ${summary.loop}` : ""].filter(Boolean).join(" · ");
if (total) at("strip").append(...calls.map(call => make("i", { style: `flex:${call.seconds / total} 0 0;background:hsl(${(hue(call.label))} 45% 60%)`, title: `#${call.id} ${call.kernel}: ${us(call.seconds)}`, onclick: () => select({ call: call.id }) })));
function hue(label) { let sum = 7; for (const one of label) sum = (sum * 31 + one.charCodeAt(0)) % 360; return sum; }
draw("before");
draw("after");
addEventListener("hashchange", readHash);
readHash();
document.documentElement.dataset.ready = Math.round(performance.now());
