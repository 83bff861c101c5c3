"use strict";
// The other plots: completion times, slowdowns, sweeps, links and dark time. One colour for each fabric throughout.
report.charts = (() => {
  const label = (place) => report.escape(report.data.series[place].label);
  const several = report.data.series.length > 1;
  const state = { phase: report.data.completions.phases[0] };
  const log = (more) => report.axis({ type: "log", ...more });

  const line = (curve, x, y, more = {}) => ({
    type: "scatter", mode: "lines", x, y, name: label(curve.series), legendgroup: curve.series,
    line: { color: report.seriesColour(curve.series), width: 2.2, dash: report.dash(curve.series) }, ...more,
  });

  // -- flows ---------------------------------------------------------------------------------------------------------
  const completions = () => {
    const curves = report.data.completions.curves[state.phase];
    document.getElementById("flows-empty").hidden = Boolean(curves);
    document.querySelector("#flows .two").hidden = !curves;
    if (!curves) return;
    report.plot("fct-plot", curves.map((curve) => line(curve, curve.fct, curve.share, {
      line: { color: report.seriesColour(curve.series), width: 2.2, shape: "hv", dash: report.dash(curve.series) },
      text: curve.fct.map(report.seconds), hovertemplate: "%{text}: %{y:.1%} of flows<extra>%{fullData.name}</extra>",
    })), {
      height: 330, showlegend: several,
      xaxis: log({ title: "FCT", ...report.timeTicks(curves.flatMap((curve) => curve.fct)) }),
      yaxis: report.axis({ range: [0, 1.02], tickformat: ".0%" }),
    });
    slowdowns(curves);
    facts(curves);
  };

  const slowdowns = (curves) => {
    const known = curves.filter((curve) => curve.size.length), sizes = known.flatMap((curve) => curve.size);
    const text = (curve, values) => curve.size.map((size, at) =>
      `${report.size(size)}: ${values[at]} (${curve.counts[at]} flows)`);
    const both = (curve) => {
      const marker = { size: 6, color: report.seriesColour(curve.series) }, hover = "%{text}<extra>%{fullData.name}</extra>";
      return [
        line(curve, curve.size, curve.median, { mode: "lines+markers", marker, text: text(curve, curve.median), hovertemplate: hover }),
        line(curve, curve.size, curve.p99, {
          mode: "lines+markers", marker: { ...marker, symbol: "circle-open" }, showlegend: false, text: text(curve, curve.p99), hovertemplate: hover,
          line: { color: report.seriesColour(curve.series), width: 1.5, dash: "dot" },
        }),
      ];
    };
    const top = Math.max(...known.flatMap((curve) => curve.p99), 1), low = Math.min(...known.flatMap((curve) => curve.median), 1);
    report.plot("slowdown-plot", known.flatMap(both), {
      height: 330, showlegend: several,
      xaxis: log({ title: "flow size", ...(sizes.length ? report.sizeTicks(sizes) : {}) }),
      yaxis: report.axis({ title: "slowdown", type: top / low > 30 ? "log" : "linear", ...(top / low <= 30 && { rangemode: "tozero" }) }),
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: report.colour("strong"), width: 1 }, layer: "below" }],
    });
  };

  const facts = (curves) => {
    const list = document.getElementById("flow-facts");
    list.replaceChildren(...curves.map((curve) => {
      const item = document.createElement("li"), key = document.createElement("span");
      key.className = "key";
      key.style.setProperty("--c", `var(--s${curve.series % 8})`);
      const resent = curve.resent === null ? "" : `, ${curve.resent.toLocaleString("en")} segments sent again`;
      const charged = curve.charged ? `, ${curve.charged.toLocaleString("en")} too small to send and charged` : "";
      item.append(key, `${report.data.series[curve.series].label}: ${curve.count.toLocaleString("en")} flows, ${curve.text}${resent}${charged}`);
      return item;
    }));
  };

  // -- collectives ---------------------------------------------------------------------------------------------------
  const sweeps = () => {
    const figure = document.getElementById("sweep-figure");
    if (!figure || !report.data.sweeps.length) return;
    figure.hidden = false;
    const steps = [...new Set(report.data.sweeps.map((curve) => `${curve.label} ${curve.kind}`))];
    const symbols = ["circle", "square", "diamond", "triangle-up", "x", "star"];
    report.plot("sweep-plot", report.data.sweeps.map((curve) => {
      const step = steps.indexOf(`${curve.label} ${curve.kind}`);
      return line(curve, curve.size, curve.busbw.map((value) => value / 1e9), {
        mode: "lines+markers", name: `${report.escape(curve.label)} (${curve.kind})${several ? `, ${label(curve.series)}` : ""}`,
        marker: { size: 8, symbol: symbols[step % symbols.length], color: report.seriesColour(curve.series) }, legendgroup: undefined,
        text: curve.size.map(report.size), hovertemplate: "%{text}: %{y:.4g} GB/s<extra>%{fullData.name}</extra>",
      });
    }), {
      height: 320, showlegend: true,
      xaxis: log({ title: "size", ...report.sizeTicks(report.data.sweeps.flatMap((curve) => curve.size)) }),
      yaxis: report.axis({ title: "busbw (GB/s)", rangemode: "tozero" }),
    });
  };

  // -- links and dark time: points beside each other, spread out so that equal ones can be seen ---------------------------
  const spread = (count, at) => (count > 1 ? 0.22 * (((at * 0.618034) % 1) * 2 - 1) : 0);
  const places = (names, present) => {
    // By name a band of width 1, in it one column for each series.
    const width = 1 / Math.max(present.length, 1);
    return (name, series) => names.indexOf(name) + (present.indexOf(series) + 0.5) * width - 0.5;
  };
  const columns = (rows, key, order) => {
    const found = new Set(rows.map((row) => row[key])), present = [...new Set(rows.map((row) => row.series))].sort((a, b) => a - b);
    const names = order.all ? order.names : [...order.names.filter((name) => found.has(name)), ...[...found].filter((name) => !order.names.includes(name))];
    return { names, present, place: places(names, present), shrink: 1 / Math.max(present.length, 1) };
  };
  const bandAxis = (names) => report.axis({
    tickvals: names.map((_, at) => at), ticktext: names.map(report.escape), range: [-0.5, names.length - 0.5], showgrid: false, fixedrange: true,
  });
  const dividers = (names) => names.slice(1).map((_, at) => ({
    type: "line", yref: "paper", x0: at + 0.5, x1: at + 0.5, y0: 0, y1: 1, line: { color: report.colour("line"), width: 1 }, layer: "below",
  }));
  const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

  // Bands side by side, in each a column of points for every fabric with a line at their median.
  const strips = (id, rows, key, order, values, texts, layout) => {
    const { names, present, place, shrink } = columns(rows, key, order), named = new Set();
    const traces = rows.map((row) => {
      const at = place(row[key], row.series), all = values(row);
      const made = {
        type: "scatter", mode: "markers", x: all.map((_, point) => at + spread(all.length, point) * shrink * 1.5), y: all,
        marker: { size: 7, opacity: 0.72, color: report.seriesColour(row.series), line: { width: 0 } }, name: label(row.series),
        legendgroup: row.series, text: texts(row), hovertemplate: "%{text}<extra>%{fullData.name}</extra>", showlegend: !named.has(row.series),
      };
      named.add(row.series);
      return made;
    });
    const medians = rows.map((row) => {
      const at = place(row[key], row.series), y = middle(values(row));
      return { type: "line", x0: at - 0.36 * shrink, x1: at + 0.36 * shrink, y0: y, y1: y, line: { color: report.seriesColour(row.series), width: 2 } };
    });
    report.plot(id, traces, { showlegend: several && present.length > 1, xaxis: bandAxis(names), shapes: [...dividers(names), ...medians], ...layout(names, place) });
  };

  const LAYERS = ["host → ToR", "ToR → EPS", "EPS → EPS", "EPS → ToR", "ToR → host", "ToR → OCS", "OCS → ToR"];
  const links = () => {
    if (!document.getElementById("links-plot") || !report.data.links.length) return;
    const text = (row) => row.busy.map((busy, at) => `${report.escape(row.names[at] || `${row.count} links`)}: ${report.percent(busy)}`);
    strips("links-plot", report.data.links, "layer", { names: LAYERS }, (row) => row.busy, text, () => ({
      height: 330, yaxis: report.axis({ title: "utilisation", tickformat: ".0%", rangemode: "tozero" }),
    }));
  };

  const FIGURES = ["asked", "control", "data plane", "service"];
  const dark = () => {
    if (!document.getElementById("dark-plot") || !report.data.dark.length) return;
    const rows = report.data.dark, all = rows.flatMap((row) => row.seconds), wide = Math.max(...all) / Math.min(...all) > 20;
    const [name, unit] = report.timeUnit(Math.max(...all)), values = (row) => row.seconds.map((value) => value / (wide ? 1 : unit));
    const text = (row) => row.seconds.map((value, at) => `${row.figure}: ${report.seconds(value)}<br>${row.changes[at] || `of ${row.count} changes`}`);
    const medians = (place) => rows.map((row) => ({
      x: place(row.figure, row.series), y: wide ? Math.log10(middle(row.seconds)) : middle(values(row)), text: `<b>${report.seconds(middle(row.seconds))}</b>`,
      showarrow: false, yshift: 13, font: { size: 12.5, color: report.colour("ink") }, bgcolor: report.colour("surface"), borderpad: 1,
    }));
    const missing = (names) => names.filter((figure) => !rows.some((row) => row.figure === figure)).map((figure) => ({
      x: names.indexOf(figure), yref: "paper", y: 0.5, text: "not measured", showarrow: false, font: { color: report.colour("muted") }, bgcolor: report.colour("surface"),
    }));
    strips("dark-plot", rows, "figure", { names: FIGURES, all: true }, values, text, (names, place) => ({
      height: 320, annotations: [...medians(place), ...missing(names)],
      yaxis: wide ? log({ title: "dark time", ...report.timeTicks(all) })
        : report.axis({ title: `dark time (${name})`, range: [0, (1.18 * Math.max(...all)) / unit] }),
    }));
  };

  const draw = () => { completions(); sweeps(); links(); dark(); };
  report.choose(document.getElementById("flow-phases"), report.data.completions.phases, 0, (at) => {
    state.phase = report.data.completions.phases[at];
    completions();
  });
  report.redraw.push(draw);
  return { draw };
})();
