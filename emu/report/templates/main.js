"use strict";
// The choice of what is drawn, the scheme, and the first drawing.
(() => {
  const root = document.documentElement, button = document.getElementById("scheme"), schemes = ["auto", "light", "dark"];
  const system = matchMedia("(prefers-color-scheme: dark)"), views = report.data.views;
  const redraw = () => report.redraw.forEach((draw) => draw());

  button.addEventListener("click", () => {
    const next = schemes[(schemes.indexOf(root.dataset.scheme || "auto") + 1) % schemes.length];
    root.dataset.scheme = next;
    button.textContent = next[0].toUpperCase() + next.slice(1);
    redraw();
  });
  system.addEventListener("change", redraw);

  const repeats = views.some((view) => view.repeat > 1);
  const labels = views.map((view) => (repeats ? `${view.label}, repeat ${view.repeat}` : view.label));
  const first = Math.max(0, views.findIndex((view) => view.fabric.groups?.epochs?.length > 1));  // circuits are worth a look
  for (const name of ["fabric", "timeline"]) {
    const box = document.querySelector(`[data-views="${name}"]`);
    report.choose(box, labels, first, (place) => report[name].view(place));
    if (views.length) report[name].view(first);
    else document.getElementById(name).hidden = true;
  }
  report.charts.draw();
  root.dataset.ready = "yes";
})();
