"use strict";
// The plot of a sweep: one phase at a time over one parameter, a line for each fabric.
(() => {
  const root = document.documentElement, button = document.getElementById("scheme"), schemes = ["auto", "light", "dark"];
  const data = report.data;
  let phase = data.phases[0];

  // Far apart values are put on a logarithmic axis.
  const wide = (values) => values.length > 1 && Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) >= 20;
  const rate = (value) => report.human(value, [["Tb/s", 1e12], ["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3], ["b/s", 1]]);
  const text = { seconds: report.seconds, size: report.size, rate, number: String };

  const across = () => {
    if (data.kind === "words") return report.axis({ title: data.axis, type: "category" });
    const values = [...new Set(data.lines[phase].flatMap((line) => line.x))].sort((a, b) => a - b);
    const ticks = { tickvals: values, ticktext: values.map(text[data.kind]) };
    return report.axis({ title: data.axis, type: wide(values) ? "log" : "linear", ...(values.length <= 12 ? ticks : {}) });
  };

  const up = () => {
    const values = data.lines[phase].flatMap((line) => [...line.low, ...line.high]);
    if (wide(values)) return report.axis({ title: "time", type: "log", ...report.timeTicks(values) });
    return report.axis({ title: "time (s)", rangemode: "tozero" });
  };

  const draw = () => {
    if (!phase) return;
    report.plot("sweep-plot", data.lines[phase].map((line) => ({
      type: "scatter", mode: "lines+markers", x: line.x, y: line.median, name: report.escape(data.series[line.series].label),
      line: { color: report.seriesColour(line.series), width: 2.2, dash: report.dash(line.series) }, marker: { size: 7 },
      error_y: {
        type: "data", symmetric: false, thickness: 1.4, width: 4, array: line.high.map((value, at) => value - line.median[at]),
        arrayminus: line.low.map((value, at) => line.median[at] - value),
      },
      text: line.text.map(report.escape), hovertemplate: "%{text}<extra>%{fullData.name}</extra>",
    })), { height: 440, showlegend: data.series.length > 1, xaxis: across(), yaxis: up() });
  };

  report.choose(document.getElementById("phases"), data.phases, 0, (at) => {
    phase = data.phases[at];
    draw();
  });
  button.addEventListener("click", () => {
    const next = schemes[(schemes.indexOf(root.dataset.scheme || "auto") + 1) % schemes.length];
    root.dataset.scheme = next;
    button.textContent = next[0].toUpperCase() + next.slice(1);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  root.dataset.ready = "yes";
})();
