"use strict";
// One run's page: the map's tools, its legend, search, and what is near the chosen node.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("payload").textContent);
let map = null;
if (data) startMap();
themeButton($("theme"), () => map && map.draw());
if ($("copy")) {
  $("copy").addEventListener("click", async () => {
    getSelection().selectAllChildren($("command")); // at least marked, where copying is not allowed
    await navigator.clipboard?.writeText($("command").textContent);
    $("copy").textContent = "Copied";
  });
}

function startMap() {
  const n = data.ids.length, { width, step, error } = data.vectors;
  const rows = unpack(data.vectors.rows, Int8Array);
  const linksOf = adjacency(data.edges ? unpack(data.edges, Uint16Array) : []);
  const SIMILAR = "similarity to the chosen node";
  let shading = null; // the colouring in use
  let chosen = -1;

  for (const column of data.columns) {
    if (column.codes) column.codes = unpack(column.codes, Uint16Array);
    else column.values = unpack(column.values, Float32Array);
  }
  const shadings = data.columns.map((column) => colouring(column, data));
  for (const found of data.maps) found.places = plainPlaces(found.places);

  map = new NodeMap($("map"), data.maps.at(-1).places, { hover, choose });
  $("map").nodeMap = map; // for whoever looks from the console
  mapButtons();
  colourMenu();
  searchBox();
  for (const [id, act] of [["in", () => map.zoomBy(1.6)], ["out", () => map.zoomBy(1 / 1.6)], ["fit", () => map.reset()]]) {
    $(id).addEventListener("click", act);
  }

  function similarity(node) { // cosine with every node
    const like = new Float32Array(n), mine = rows.subarray(node * width, (node + 1) * width);
    for (let i = 0, at = 0; i < n; i++) {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += mine[k] * rows[at++];
      like[i] = sum * step * step;
    }
    return like;
  }

  // tools --------------------------------------------------------------------------------------

  function mapButtons() {
    const buttons = data.maps.map((found, k) =>
      make("button", { type: "button", onclick: () => show(k) }, found.name));
    $("layouts").append(...buttons);
    const show = (k) => {
      buttons.forEach((button, j) => button.setAttribute("aria-pressed", j === k));
      $("layout-note").textContent = data.maps[k].note;
      map.moveTo(data.maps[k].places);
    };
    show(data.maps.length - 1);
  }

  function colourMenu() {
    data.columns.forEach((column, k) => $("colour").append(make("option", { value: k }, column.name)));
    $("colour").append(make("option", { value: "similarity" }, SIMILAR));
    $("colour").addEventListener("change", recolour);
    recolour();
  }

  function recolour() {
    const value = $("colour").value;
    let column = data.columns[value];
    if (value === "similarity") {
      const values = chosen < 0 ? new Float32Array(n).fill(NaN) : similarity(chosen);
      column = { name: SIMILAR, values, low: 0, high: 1 };
      shading = colouring(column, data);
    } else {
      shading = shadings[value];
    }
    map.colour(shading.colours, shading.colourOf);
    map.focus(null);
    legend(column);
  }

  function legend(column) {
    const box = $("legend");
    $("legend-title").textContent = column.name;
    box.className = "legend";
    if (!column.names) {
      const bar = make("div", { class: "ramp" });
      bar.style.background = `linear-gradient(90deg, ${data.ramp.join(",")})`;
      const ends = make("div", { class: "ends" }, make("span", {}, number(column.low)), make("span", {}, number(column.high)));
      const idle = column.name === SIMILAR && chosen < 0;
      box.replaceChildren(bar, ends, idle ? make("p", { class: "hint" }, "Choose a node first: click one, or search.") : "");
      return;
    }
    const most = data.palette.length, rest = column.counts.slice(most);
    const missing = column.codes.reduce((sum, code) => sum + (code === NONE), 0);
    const rows = column.names.slice(0, most).map((name, k) => [name, column.counts[k], shading.colours[k], (i) => column.codes[i] === k]);
    if (rest.length) {
      const others = rest.reduce((sum, count) => sum + count, 0);
      rows.push([`${rest.length} others`, others, shading.colours[most], (i) => column.codes[i] >= most && column.codes[i] !== NONE]);
    }
    if (missing) rows.push(["none", missing, shading.colours[most + 1], (i) => column.codes[i] === NONE]);
    const buttons = rows.map(([name, count, colour, belongs]) =>
      make("button", { type: "button", "aria-pressed": "false", title: name, onclick: (event) => only(event.currentTarget, belongs) },
        make("span", { class: "swatch", colour }), make("span", {}, name), make("small", {}, count.toLocaleString("en"))));
    box.replaceChildren(...buttons);
    function only(button, belongs) { // show one group alone; once more shows all
      const now = button.getAttribute("aria-pressed") !== "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", other === button && now));
      box.classList.toggle("some", now);
      map.focus(now ? belongs : null);
    }
  }

  function searchBox() {
    const box = $("search"), hits = $("hits"), small = data.ids.map((id) => id.toLowerCase());
    let found = [], active = 0;
    const close = () => { hits.hidden = true; box.setAttribute("aria-expanded", "false"); };
    const take = (node) => { close(); box.value = data.ids[node]; choose(node); map.goTo(node); };
    const list = () => {
      hits.replaceChildren(...found.map((node, k) =>
        make("li", { role: "option", "aria-selected": k === active, onpointerdown: (event) => { event.preventDefault(); take(node); } }, data.ids[node])));
      if (!found.length) hits.append(make("li", { class: "none" }, "No node has this in its id."));
      hits.hidden = false;
      box.setAttribute("aria-expanded", "true");
    };
    box.addEventListener("input", () => {
      const asked = box.value.trim().toLowerCase();
      if (!asked) return close();
      const ranked = [[], [], []]; // the id itself, ids that begin with it, ids that hold it
      for (let i = 0; i < n; i++) {
        const at = small[i].indexOf(asked);
        if (at < 0) continue;
        const rank = small[i] === asked ? 0 : at === 0 ? 1 : 2;
        if (ranked[rank].length < 8) ranked[rank].push(i);
      }
      found = ranked.flat().slice(0, 8);
      active = 0;
      list();
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return close();
      if (hits.hidden || !found.length) return;
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { active = (active + step + found.length) % found.length; list(); event.preventDefault(); }
      if (event.key === "Enter") { event.preventDefault(); take(found[active]); }
    });
    box.addEventListener("blur", close);
  }

  // nodes --------------------------------------------------------------------------------------

  function hover(node) {
    const lines = node < 0 ? [] : [make("b", {}, data.ids[node]),
      ...data.columns.slice(0, 6).map((column, k) => make("div", {}, `${column.name}: ${shadings[k].text(node)}`))];
    tipAt($("tip"), map, node, ...lines);
  }

  function choose(node) {
    chosen = node;
    const box = $("chosen");
    if (node < 0) {
      map.choose(-1);
      box.replaceChildren(make("p", { class: "hint" }, "Click a node to see which nodes are most like it."));
      if ($("colour").value === "similarity") recolour();
      return;
    }
    const like = similarity(node), links = linksOf(node), linked = new Set(links);
    const near = largest(like, 10, node);
    map.choose(node, near, links);
    const facts = make("dl", { class: "facts" });
    data.columns.forEach((column, k) => facts.append(make("dt", {}, column.name), make("dd", {}, shadings[k].text(node))));
    const list = make("ol", { class: "near" }, ...near.map((other) =>
      make("li", {}, make("button", { type: "button", onclick: () => { choose(other); map.goTo(other); }, onpointerenter: () => map.hover(other), onpointerleave: () => map.hover(-1) },
        make("span", { class: "swatch", colour: shadings[0].colour(other), title: shadings[0].text(other) }),
        make("span", { class: "id" }, data.ids[other]),
        linked.has(other) ? make("span", { class: "linked" }, "linked") : "",
        make("small", {}, like[other].toFixed(2))))));
    box.replaceChildren(
      make("div", { class: "name" }, make("span", {}, data.ids[node]), make("button", { type: "button", "aria-label": "let go of this node", onclick: () => choose(-1) }, "×")),
      facts, make("h3", {}, "Most like it (cosine)"), list,
      make("p", { class: "hint" }, nearNote(near, linked)));
    if ($("colour").value === "similarity") recolour();
  }

  function nearNote(near, linked) {
    const exact = `Cosines are within ${error.toFixed(3)} of the exact ones.`;
    if (!data.edges) return exact;
    const shared = near.filter((other) => linked.has(other)).length;
    return `${shared} of these ${near.length} share an edge with it; lines lead to its ${linked.size} neighbours in the graph. ${exact}`;
  }

  choose(-1);
}

function largest(values, count, except) { // places of the largest values, largest first
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (i === except || (best.length === count && values[i] <= values[best.at(-1)])) continue;
    let k = best.length;
    while (k && values[best[k - 1]] < values[i]) k--;
    best.splice(k, 0, i);
    if (best.length > count) best.pop();
  }
  return best;
}

function adjacency(ends) { // node => the nodes it shares an edge with
  const lists = new Map();
  const add = (a, b) => lists.has(a) ? lists.get(a).push(b) : lists.set(a, [b]);
  for (let k = 0; k < ends.length; k += 2) { add(ends[k], ends[k + 1]); add(ends[k + 1], ends[k]); }
  return (node) => lists.get(node) || [];
}
