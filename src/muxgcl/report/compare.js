"use strict";
// Several runs' maps side by side: a node that is pointed at is ringed on every map that has it.

const data = JSON.parse(document.getElementById("payload").textContent);
const stages = [...document.querySelectorAll(".mini .stage")];
const maps = data.runs.map((run, k) => {
  run.column.codes = unpack(run.column.codes, Uint16Array);
  const shading = colouring(run.column, data);
  const nodeOf = new Map(run.ids.map((id, node) => [id, node]));
  const map = new NodeMap(stages[k].querySelector("canvas"), plainPlaces(run.places), {
    hover: (node) => point(k, node < 0 ? null : run.ids[node]),
    choose: () => {},
  });
  map.colour(shading.colours, shading.colourOf);
  map.canvas.nodeMap = map; // for whoever looks from the console
  return { map, shading, nodeOf, tip: stages[k].querySelector(".tip") };
});
themeButton(document.getElementById("theme"), () => maps.forEach(({ map }) => map.draw()));

function point(from, id) {
  maps.forEach(({ map, shading, nodeOf, tip }, k) => {
    const node = id === null || !nodeOf.has(id) ? -1 : nodeOf.get(id);
    map.hovered = node;
    map.draw();
    tipAt(tip, map, k === from ? node : -1, make("b", {}, id ?? ""), make("div", {}, node < 0 ? "" : shading.text(node)));
  });
}
