"use strict";
// The timeline: bars (or sums) on rows, one trace for each kind and phase, so that zooming stays quick.
report.timeline = (() => {
  const LOOKS = { phase: 1, collective: 0.92, send: 0.95, receive: 0.5, circuit: 0.85, dark: 1 };
  const state = { view: 0 };
  const plot = document.getElementById("timeline-plot");

  const trace = (bars, unit) => {
    const circuit = bars.kind === "circuit", dark = bars.kind === "dark";
    const colour = circuit ? report.colour("strong") : dark ? report.colour("ink") : report.phaseColour(bars.phase);
    const words = bars.text.map((text) => (circuit ? text.split("|") : ["", text]));
    return {
      type: "bar", orientation: "h", base: bars.x.map((x) => x / unit), x: bars.dx.map((dx) => dx / unit), y: bars.y, width: bars.h,
      marker: {
        color: colour, opacity: LOOKS[bars.kind], line: { width: 0 },
        ...(dark && { color: report.colour("bg"), pattern: { shape: "/", fgcolor: colour, size: 5, solidity: 0.35 }, line: { width: 1, color: colour } }),
      },
      ...(circuit && {
        text: words.map(([short]) => report.escape(short)), textposition: "inside", insidetextanchor: "middle", textangle: 0,
        insidetextfont: { color: report.colour("ink"), size: 11 }, constraintext: "none",
      }),
      hovertext: words.map(([, text]) => report.escape(text).replaceAll("&lt;br&gt;", "<br>")), hoverinfo: "text",
      name: bars.kind, showlegend: false,
    };
  };

  const heat = (heat, rows, unit) => {
    const ramp = report.ramp(), hosts = rows.filter((row) => row.group === "hosts");
    return {
      type: "heatmap", x0: heat.dx / 2 / unit, dx: heat.dx / unit, y: heat.y, z: heat.z, zmin: 0, zmax: 1, zsmooth: false,
      colorscale: ramp.scale, showscale: false,
      text: heat.z.map((line, at) => line.map(() => `${report.escape(hosts[Math.floor(at / 2)].label)} ${at % 2 ? "receives" : "sends"}`)),
      hovertemplate: "%{text}: %{z:.0%} of its NICs<extra></extra>",
    };
  };

  const bands = (shown, unit) => shown.bands.map(([from, to]) => ({
    type: "rect", xref: "x", yref: "paper", x0: from / unit, x1: to / unit, y0: 0, y1: 1, layer: "below",
    fillcolor: report.colour("ink"), opacity: 0.13, line: { width: 0 },
  }));

  // The name of each group above its first row, and a line under the rows of hosts.
  const headings = (rows) => rows.filter((row, at) => at === 0 || rows[at - 1].group !== row.group).map((row) => ({
    xref: "paper", yref: "y", x: 0, y: row.y - row.h / 2 - 0.36, xanchor: "left", yanchor: "middle", showarrow: false,
    text: `<b>${row.group}</b>`, font: { size: 11.5, color: report.colour("muted") },
  }));

  // As many row labels as there is room for.
  const labels = (rows, pixels) => {
    let last = -Infinity;
    return rows.filter((row) => {
      const room = (row.y - last) * pixels >= 12.5;
      if (room) last = row.y;
      return room;
    });
  };

  const legend = (shown) => {
    const box = document.getElementById("timeline-legend"), add = (colour, text, kind = "") => {
      const swatch = document.createElement("i"), label = document.createElement("span"), item = document.createElement("span");
      swatch.className = `swatch ${kind}`;
      if (colour) swatch.style.background = `var(--${colour})`;
      label.textContent = text;
      item.className = "item";
      item.append(swatch, label);
      box.append(item);
    };
    box.replaceChildren();
    const used = new Set(shown.bars.map((bars) => bars.phase).filter((phase) => phase !== null));
    report.data.phases.forEach((name, at) => { if (used.has(at)) add(`p${at % 8}`, name); });
    const kinds = new Set(shown.bars.map((bars) => bars.kind));
    if (kinds.has("circuit")) add("strong", "circuit, to where");
    if (kinds.has("dark")) add("", "dark", "dark");
    if (kinds.has("send")) box.append("hosts: sent above, received below and paler");
  };

  const show = () => {
    const shown = report.data.views[state.view].timeline;
    document.getElementById("timeline-note").textContent = shown.notes.join(" ");
    legend(shown);
    if (!shown.rows.length) return Plotly.purge(plot);
    const [name, unit] = report.timeUnit(shown.end), pixels = Math.max(12, Math.min(21, 1100 / shown.height));
    const ticks = labels(shown.rows, pixels), traces = shown.bars.map((bars) => trace(bars, unit));
    if (shown.heat) traces.push(heat(shown.heat, shown.rows, unit));
    report.plot(plot, traces, {
      height: shown.height * pixels + 88, barmode: "overlay", bargap: 0, dragmode: "zoom",
      xaxis: report.axis({ title: `modelled time (${name})`, range: [0, (1.005 * shown.end) / unit], autorange: false }),
      yaxis: report.axis({
        range: [shown.height + 0.15, 0], fixedrange: true, showgrid: false, ticks: "", tickvals: ticks.map((row) => row.y),
        ticktext: ticks.map((row) => report.escape(row.label)), tickfont: { size: 11.5 },
      }),
      shapes: bands(shown, unit), annotations: headings(shown.rows),
    });
  };

  report.redraw.push(show);
  return { view: (place) => { state.view = place; show(); } };
})();
