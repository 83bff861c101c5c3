"use strict";
// What all views share: the data, numbers for people, colours of the scheme, and how plots look.
const report = { data: JSON.parse(document.getElementById("data").textContent), redraw: [] };

report.escape = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// Four significant digits in the largest unit that keeps the number at 1 or above.
report.human = (value, units) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return `0 ${units[units.length - 1][0]}`;
  for (const [unit, size] of units) {
    const rounded = Number((value / size).toPrecision(4));
    if (Math.abs(rounded) >= 1 || unit === units[units.length - 1][0]) return `${rounded} ${unit}`;
  }
};
report.seconds = (value) => report.human(value, [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]]);
report.size = (value) =>
  report.human(value, ["PiB", "TiB", "GiB", "MiB", "KiB", "B"].map((unit, at) => [unit, 2 ** (10 * (5 - at))]));
report.percent = (share) => (share === null ? "dark" : `${Number((100 * share).toPrecision(3))} %`);

// The unit of a linear time axis that ends at so many seconds.
report.timeUnit = (end) => [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, size]) => end >= size) || ["ns", 1e-9];

// Ticks at powers of two, about six of them; at the sizes themselves where these are too close to each other.
report.sizeTicks = (sizes) => {
  if (Math.max(...sizes) < 4 * Math.min(...sizes)) {
    const own = [...new Set(sizes)].filter((size, at, all) => all.every((other) => other >= size || size > 1.15 * other));
    return { tickvals: own, ticktext: own.map(report.size) };
  }
  const low = Math.floor(Math.log2(Math.min(...sizes))), high = Math.ceil(Math.log2(Math.max(...sizes)));
  const step = Math.max(1, Math.ceil((high - low) / 6)), ticks = [];
  for (let power = low; power <= high; power += step) ticks.push(2 ** power);
  return { tickvals: ticks, ticktext: ticks.map(report.size) };
};

// Ticks of a logarithmic time axis at 1, 2 and 5, or at powers of ten only where it is long.
report.timeTicks = (seconds) => {
  const low = Math.floor(Math.log10(Math.min(...seconds))), high = Math.ceil(Math.log10(Math.max(...seconds))), ticks = [];
  for (let power = low; power <= high; power++) {
    for (const digit of high - low > 3 ? [1] : high - low > 2 ? [1, 3] : [1, 2, 5]) ticks.push(Number(`${digit}e${power}`));
  }
  return { tickvals: ticks, ticktext: ticks.map(report.seconds) };
};

// A colour of the scheme that holds now, as rgb(...).
report.colour = (() => {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  return (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
})();
report.seriesColour = (place) => report.colour(`s${place % 8}`);
report.phaseColour = (place) => report.colour(place === null || place === undefined ? "muted" : `p${place % 8}`);
report.dash = (place) => ["solid", "dash", "dot", "dashdot"][Math.floor(place / 8) % 4];

// Between the colours of no and of full load.
report.ramp = () => {
  const stops = [0, 1, 2, 3, 4].map((at) => report.colour(`l${at}`).match(/[\d.]+/g).slice(0, 3).map(Number));
  const mix = (share) => {
    const at = Math.max(0, Math.min(0.9999, share)) * 4, low = Math.floor(at);
    const parts = stops[low].map((part, channel) => part + (stops[low + 1][channel] - part) * (at - low));
    return `rgb(${parts.map(Math.round).join(",")})`;
  };
  mix.scale = stops.map((stop, at) => [at / 4, `rgb(${stop.join(",")})`]);
  return mix;
};

report.axis = (more = {}) => ({
  gridcolor: report.colour("line"), linecolor: report.colour("strong"), zeroline: false, ticks: "outside", ticklen: 4,
  tickcolor: report.colour("strong"), automargin: true, ...more,
  title: more.title ? { text: more.title, standoff: 8, font: { size: 12, color: report.colour("muted") } } : undefined,
});

report.layout = (more) => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 12, r: 14, t: 36, b: 8 },
  font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: report.colour("ink") },
  hoverlabel: {
    bgcolor: report.colour("ink"), bordercolor: report.colour("ink"), align: "left",
    font: { color: report.colour("bg"), family: getComputedStyle(document.body).fontFamily, size: 12.5 },
  },
  modebar: { bgcolor: "rgba(0,0,0,0)", color: report.colour("muted"), activecolor: report.colour("accent") },
  legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { size: 12.5 } },
  hovermode: "closest", ...more,
});

report.plot = (id, traces, { height, ...layout }) => {
  const box = typeof id === "string" ? document.getElementById(id) : id;
  box.style.height = `${Math.round(height)}px`;
  return Plotly.react(box, traces, report.layout(layout), {
    responsive: true, displaylogo: false, displayModeBar: "hover",
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  });
};

// Buttons of which one is pressed, or a list where there are many; `chosen` is called with the place of the choice.
report.choose = (box, labels, pressed, chosen) => {
  box.replaceChildren();
  if (labels.length < 2) return;
  if (labels.length > 6) {
    const list = document.createElement("select");
    list.setAttribute("aria-label", box.getAttribute("aria-label") || "");
    labels.forEach((label, at) => list.add(new Option(label, at, false, at === pressed)));
    list.addEventListener("change", () => chosen(Number(list.value)));
    return box.append(list);
  }
  labels.forEach((label, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-pressed", String(at === pressed));
    button.addEventListener("click", () => {
      for (const other of box.children) other.setAttribute("aria-pressed", String(other === button));
      chosen(at);
    });
    box.append(button);
  });
};
