"use strict";
// The fabric as SVG: layers of nodes, each cable two lines, the circuits of a step as arcs inside their OCS.
report.fabric = (() => {
  const NS = "http://www.w3.org/2000/svg", box = document.getElementById("drawing"), tip = document.getElementById("tip");
  const slider = document.getElementById("step"), play = document.getElementById("step-play");
  const state = { view: 0, group: "", step: 0, timer: null, lit: new Set() };
  const OCS_HEIGHT = 84;
  let parts = null;

  const element = (name, attributes, parent) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent?.append(made);
    return made;
  };
  const fabric = () => report.data.views[state.view].fabric;
  const steps = () => fabric().groups?.[state.group] || [];

  // -- the still part ------------------------------------------------------------------------------------------------
  const build = () => {
    const drawn = fabric();
    parts = null;
    box.replaceChildren();
    document.getElementById("drawing-legend").hidden = Boolean(drawn.problem);
    if (drawn.problem) {
      const text = document.createElement("p");
      text.className = "empty";
      text.textContent = drawn.problem;
      return box.append(text);
    }
    const svg = element("svg", { viewBox: `0 0 ${drawn.width} ${drawn.height}`, role: "img", "aria-label": "The fabric" }, box);
    svg.style.minWidth = `${Math.min(drawn.width * 0.72, 2400)}px`;
    for (const [title, y] of drawn.layers) element("text", { class: "layer", x: 14, y }, svg).textContent = title;
    const nodes = new Map(drawn.nodes.map((node) => [node.name, node]));
    parts = { nodes, cables: [], arcs: null };
    const wires = element("g", {}, svg);
    drawn.cables.forEach((cable) => parts.cables.push(drawCable(wires, cable, nodes)));
    for (const node of drawn.nodes) drawNode(svg, node);
    parts.arcs = element("g", { class: "circuits" }, svg);
  };

  const half = (node) => (node.kind === "ocs" ? OCS_HEIGHT / 2 : node.kind === "host" ? 11 : 13);
  const end = (node, port, other) => {
    const above = node.y < other.y || (node.kind === "ocs" && node.y === other.y);
    const x = node.kind === "ocs" ? node.ports[port] ?? node.x : node.x;
    return { x, y: node.y + (above ? half(node) : -half(node)) };
  };
  const sideways = (cable) => fabric().cables.filter((each) => each.a === cable.a && each.b === cable.b && each.ap < cable.ap).length;

  const drawCable = (group, cable, nodes) => {
    const a = nodes.get(cable.a), b = nodes.get(cable.b);
    const from = end(a, cable.ap, b), to = end(b, cable.bp, a);
    if (a.kind !== "ocs" && b.kind !== "ocs") {
      from.x += 7 * sideways(cable);
      to.x += 7 * sideways(cable);
    }
    const long = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const [dx, dy] = [(1.9 * (to.y - from.y)) / long, (-1.9 * (to.x - from.x)) / long];
    const line = (sign, kind) =>
      element("line", {
        class: kind, x1: from.x + sign * dx, y1: from.y + sign * dy, x2: to.x + sign * dx, y2: to.y + sign * dy,
      }, group);
    const lines = [line(1, "cable"), line(-1, "cable")];
    lines.push(line(0, "hit"));
    return lines;
  };

  const drawNode = (svg, node) => {
    const group = element("g", { class: `node ${node.kind}` }, svg), tall = 2 * half(node);
    element("rect", { x: node.x - node.w / 2, y: node.y - tall / 2, width: node.w, height: tall, rx: node.kind === "ocs" ? 10 : 5 }, group);
    const label = element("text", { x: node.x, y: node.kind === "ocs" ? node.y - tall / 2 - 10 : node.y }, group);
    label.textContent = node.kind === "hosts" ? `${node.count} h` : node.name;
    for (const x of Object.values(node.ports)) element("circle", { class: "port", cx: x, cy: node.y + tall / 2, r: 2.6 }, group);
    hover(group, () => `${node.name}: ${node.kind === "hosts" ? `${node.count} hosts` : node.kind}`);
  };

  // -- a step --------------------------------------------------------------------------------------------------------
  const show = () => {
    const step = steps()[state.step];
    if (!step || !parts) return describe(null);
    const ramp = report.ramp();
    fabric().cables.forEach((cable, at) => {
      const [there, back, hit] = parts.cables[at];
      [there, back].forEach((line, side) => paint(line, step.load[2 * at + side], ramp));
      hover(hit, () => cableText(cable, step, at));
    });
    drawCircuits(step, ramp);
    describe(step);
  };

  const paint = (line, share, ramp) => {
    line.style.stroke = ramp(share || 0);
    line.style.strokeWidth = 1.3 + 2 * Math.min(1, share || 0);
    line.dataset.load = share ?? 0;
  };

  const cableText = (cable, step, at) => {
    const way = (from, to, side) =>
      `${from} → ${to}: ${report.size(step.bytes[2 * at + side])}, ${report.percent(step.load[2 * at + side])}`;
    const rate = cable.rate ? `\n${cable.rate} each way` : "";
    return `${way(cable.a, cable.b, 0)}\n${way(cable.b, cable.a, 1)}${rate}`;
  };

  const drawCircuits = (step, ramp) => {
    parts.arcs.replaceChildren();
    const before = state.lit, first = before.size === 0;
    state.lit = new Set();
    for (const [ocs, entry, leaving, share, bytes] of step.circuits) {
      const node = parts.nodes.get(ocs), name = `${ocs}:${entry}:${leaving}`;
      if (!node) continue;
      const arc = drawArc(node, entry, leaving);
      arc.style.stroke = share === null ? report.colour("muted") : ramp(share);
      arc.style.strokeWidth = share === null ? 1.6 : 1.9 + 1.8 * Math.min(1, share);
      arc.dataset.circuit = name;
      if (share === null) arc.classList.add("dark");
      else {
        state.lit.add(name);
        if (!first && !before.has(name)) appear(arc);
      }
      hover(arc, () => `${ocs}: port ${entry} → port ${leaving}\n${share === null ? "gone dark" : `${report.size(bytes)}, ${report.percent(share)}`}`);
    }
  };

  const appear = (arc) => {
    arc.style.setProperty("--len", arc.getTotalLength());
    arc.classList.add("new");
  };

  // The two ways of a circuit are two arcs, one a little higher than the other.
  const drawArc = (node, entry, leaving) => {
    const from = node.ports[entry], to = node.ports[leaving], base = node.y + OCS_HEIGHT / 2 - 3;
    const span = Math.abs(to - from), rise = Math.min(OCS_HEIGHT - 20, 20 + 0.4 * span) + (from < to ? 0 : 7);
    const top = base - rise * 1.28;
    return element("path", { class: "circuit", d: `M${from},${base} C${from},${top} ${to},${top} ${to},${base}` }, parts.arcs);
  };

  const describe = (step) => {
    document.getElementById("step-label").textContent = step ? step.label : "";
    document.getElementById("step-when").textContent = step ? step.when : "";
    document.getElementById("step-source").textContent = step ? `by ${step.source}` : "";
    document.getElementById("drawing-note").textContent = fabric().note || "";
    slider.max = Math.max(0, steps().length - 1);
    slider.value = state.step;
    slider.setAttribute("aria-valuetext", step ? step.label : "");
    for (const id of ["step", "step-back", "step-on", "step-play"]) document.getElementById(id).disabled = steps().length < 2;
    document.getElementById("step-back").disabled ||= state.step === 0;
    document.getElementById("step-on").disabled ||= state.step >= steps().length - 1;
  };

  // -- what the reader does ------------------------------------------------------------------------------------------
  const hover = (target, text) => {
    target.onpointermove = (event) => {
      tip.textContent = text();
      tip.hidden = false;
      tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)}px`;
    };
    target.onpointerleave = () => { tip.hidden = true; };
  };

  const go = (step) => {
    state.step = Math.max(0, Math.min(step, steps().length - 1));
    show();
  };
  const stop = () => {
    clearInterval(state.timer);
    state.timer = null;
    play.textContent = "Play";
  };
  const start = () => {
    if (state.step >= steps().length - 1) go(0);
    play.textContent = "Stop";
    state.timer = setInterval(() => (state.step >= steps().length - 1 ? stop() : go(state.step + 1)), 1300);
  };
  const choices = () => {
    const names = Object.keys(fabric().groups || {});
    state.group = names.includes(state.group) ? state.group : names[0] || "";
    report.choose(document.getElementById("fabric-groups"), names.map((name) => `By ${name.replace(/s$/, "")}`), names.indexOf(state.group), (at) => {
      stop();
      state.group = names[at];
      go(0);
    });
  };
  const view = (place) => {
    stop();
    Object.assign(state, { view: place, step: 0, lit: new Set() });
    choices();
    build();
    show();
  };

  slider.addEventListener("input", () => { stop(); go(Number(slider.value)); });
  document.getElementById("step-back").addEventListener("click", () => { stop(); go(state.step - 1); });
  document.getElementById("step-on").addEventListener("click", () => { stop(); go(state.step + 1); });
  play.addEventListener("click", () => (state.timer ? stop() : start()));
  report.redraw.push(show);
  return { view };
})();
