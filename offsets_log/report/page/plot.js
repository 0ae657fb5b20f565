
/* Plots over time: steps for offsets and generations, stacked bars for counts. A pointer over one tells its numbers. */

const LEFT = 72, RIGHT = 12, TOP = 16, BOTTOM = 24, COLOURS = 8;
const DOTTED = 60, FAR = 8, FAR_BEYOND_ALIKE = 1000, FEWEST = 5;
let WIDTH = 1000;
const SVG = "http://www.w3.org/2000/svg";

/* Plots are as wide as the page, so that their letters have one size; true if that is another width than before. */
function fitPlots() {
  const before = WIDTH;
  WIDTH = Math.max(280, document.querySelector("main").clientWidth);
  return WIDTH !== before;
}

/* Where most of the values lie, if a few are so far off that they would flatten the rest; else all. */
function mostOf(values) {
  const sorted = [...values].sort((left, right) => left - right), last = sorted.length - 1;
  const [least, most] = [sorted[0], sorted[last]];
  const low = sorted[Math.ceil(0.1 * last)], high = sorted[Math.floor(0.9 * last)], span = high - low;
  const isFlat = span === 0 ? most - least > FAR_BEYOND_ALIKE * Math.max(1, Math.abs(high)) : most - least > FAR * span;
  if (sorted.length < FEWEST || !isFlat) return [least, most];
  const edge = span === 0 ? Math.max(1, Math.abs(high)) : span / 4;
  return [Math.max(least, low - edge), Math.min(most, high + edge)];
}

function shape(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A scale and round values along it: place(value) is where on the paper. */
function scale(low, high, from, to, steps) {
  const least = low === high ? low - 1 : low, most = low === high ? high + 1 : high;
  const rough = (most - least) / steps, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough) ?? rough;
  const ticks = [];
  for (let tick = Math.ceil(least / step) * step; tick <= most && ticks.length < 2 * steps; tick += step) ticks.push(tick);
  return {place: (value) => from + (to - from) * ((value - least) / (most - least)), ticks, least, most};
}

/* Short enough to stand beside the plot. */
function shownTick(tick) {
  return Math.abs(tick) < 1e10 ? shownNumber(Number(tick.toPrecision(12))) : tick.toExponential(2);
}

function timeTicks(scaled, count) {
  return Array.from({length: count + 1}, (_, i) => scaled.least + ((scaled.most - scaled.least) * i) / count);
}

function paper(height, label) {
  return shape("svg", {viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label});
}

function drawAxes(svg, height, across, up) {
  for (const tick of up.ticks) {
    const y = up.place(tick);
    svg.append(shape("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y}));
    svg.append(shape("text", {x: LEFT - 6, y: y + 4, "text-anchor": "end"}, shownTick(tick)));
  }
  const span = across.most - across.least, count = WIDTH < 600 ? 2 : 4;
  timeTicks(across, count).forEach((time, i) => {
    const anchor = i === 0 ? "start" : i === count ? "end" : "middle";
    const text = shownTime(Math.round(time));
    const shown = span < 60_000 ? text.slice(11, 23) : span < 86_400_000 ? text.slice(5, 19) : text.slice(0, 16);
    svg.append(shape("text", {x: across.place(time), y: height - 7, "text-anchor": anchor}, shown));
  });
}

function showTip(event, lines) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines.map(([className, text]) => element("div", null,
    ...(className === null ? [] : [element("span", {class: `swatch ${className}`})]), text)));
  tip.hidden = false;
  const isRight = event.clientX > window.innerWidth / 2;
  tip.style.left = isRight ? "auto" : `${event.clientX + 16}px`;
  tip.style.right = isRight ? `${window.innerWidth - event.clientX + 16}px` : "auto";
  tip.style.top = `${Math.min(event.clientY + 12, window.innerHeight - tip.offsetHeight - 8)}px`;
}

/* Calls told(time, event) with the time under the pointer, and draws a line there. */
function followPointer(svg, height, across, told) {
  const guide = shape("line", {class: "guide", y1: TOP, y2: height - BOTTOM, visibility: "hidden"});
  svg.append(guide);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const share = Math.min(1, Math.max(0, (x - LEFT) / (WIDTH - RIGHT - LEFT)));
    const at = across.place(told(across.least + share * (across.most - across.least), event));
    guide.setAttribute("x1", at);
    guide.setAttribute("x2", at);
    guide.setAttribute("visibility", "visible");
  });
  svg.addEventListener("pointerleave", () => {
    guide.setAttribute("visibility", "hidden");
    document.getElementById("tip").hidden = true;
  });
}

/* The last place in ascending times that is not later; -1 before the first. */
function lastUpTo(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/* series: [{name, times, values, texts}], values null where there is none; times ascend nearly always. */
function stepPlot(series, label, height = 300) {
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  if (values.length === 0) return element("p", {class: "hint"}, "Nothing to plot.");
  const [low, high] = mostOf(values), beyond = values.filter((value) => value < low || value > high);
  const svg = stepLines(series, label, height, [low, high]);
  if (beyond.length === 0) return svg;
  const box = element("input", {type: "checkbox"}), made = element("div", null, svg);
  box.addEventListener("change", () => made.firstChild.replaceWith(
    stepLines(series, label, height, box.checked ? extent(values) : [low, high])));
  made.append(element("div", {class: "controls"}, element("label", null, box,
    ` all values: ${shownNumber(beyond.length)} lie beyond this plot, from ${shownTick(extent(beyond)[0])} to ${shownTick(extent(beyond)[1])}`)));
  return made;
}

function clipped(scaled) {
  const inside = scaled.place;
  scaled.place = (value) => inside(Math.min(scaled.most, Math.max(scaled.least, value)));
  return scaled;
}

function extent(numbers) {
  return numbers.reduce(([low, high], n) => [Math.min(low, n), Math.max(high, n)], [Infinity, -Infinity]);
}

function stepLines(series, label, height, bounds) {
  const svg = paper(height, label);
  const times = series.flatMap((one) => one.times);
  const across = scale(...extent(times), LEFT, WIDTH - RIGHT, 5);
  const up = clipped(scale(...bounds, height - BOTTOM, TOP, 5));
  drawAxes(svg, height, across, up);
  series.forEach((one, i) => {
    const dashed = i >= COLOURS ? " dashed" : "";
    svg.append(shape("path", {class: `line s${i % COLOURS}${dashed}`, d: stepPath(one, across, up)}));
    one.times.forEach((time, at) => {
      if (one.values[at] === null) return;
      const x = across.place(time), y = up.place(one.values[at]);
      const way = one.values[at] > up.most ? -1 : one.values[at] < up.least ? 1 : 0;
      if (way === 0 && one.times.length > DOTTED) return;
      svg.append(way === 0 ? shape("circle", {class: `f${i % COLOURS}`, cx: x, cy: y, r: 2.2})
        : shape("path", {class: `f${i % COLOURS} beyond`, d: `M${x - 5} ${y}h10l-5 ${8 * way}z`}));
    });
  });
  const moments = [...new Set(times)].sort((left, right) => left - right);
  followPointer(svg, height, across, (time, event) => {
    const before = Math.max(0, lastUpTo(moments, time));
    const near = before + 1 < moments.length && moments[before + 1] - time < time - moments[before] ? before + 1 : before;
    const moment = moments[near];
    showTip(event, [[null, shownTime(moment)], ...series.map((one, i) => {
      const at = lastUpTo(one.times, moment);
      return [`b${i % COLOURS}`, `${one.name}: ${at < 0 || one.values[at] === null ? "none" : one.texts[at]}`];
    })]);
    return moment;
  });
  return svg;
}

function stepPath(one, across, up) {
  let path = "", isDrawing = false;
  one.times.forEach((time, i) => {
    const x = across.place(time).toFixed(1), value = one.values[i];
    if (isDrawing) path += `H${x}`;
    if (value === null) { isDrawing = false; return; }
    const y = up.place(value).toFixed(1);
    path += isDrawing ? `V${y}` : `M${x} ${y}`;
    isDrawing = true;
  });
  return path;
}

/* bars: [{name, values}], of which each value is a count in one interval. */
function barPlot(bars, begin, width, label, height = 220) {
  const svg = paper(height, label), count = bars[0].values.length;
  const totals = Array.from({length: count}, (_, at) => bars.reduce((sum, one) => sum + one.values[at], 0));
  const across = scale(begin, begin + count * width, LEFT, WIDTH - RIGHT, 5);
  const up = clipped(scale(0, mostOf([0, ...totals.filter((total) => total > 0)])[1], height - BOTTOM, TOP, 4));
  drawAxes(svg, height, across, up);
  const bottoms = new Array(count).fill(0), size = (WIDTH - RIGHT - LEFT) / count;
  bars.forEach((one, i) => {
    let path = "";
    one.values.forEach((value, at) => {
      if (value === 0) return;
      const x = (LEFT + at * size).toFixed(1), y = up.place(bottoms[at] + value).toFixed(1);
      path += `M${x} ${up.place(bottoms[at]).toFixed(1)}V${y}h${(size * 0.9).toFixed(1)}V${up.place(bottoms[at]).toFixed(1)}z`;
      bottoms[at] += value;
    });
    svg.append(shape("path", {class: `f${i % COLOURS}`, d: path}));
  });
  totals.forEach((total, at) => {
    if (total <= up.most) return;
    svg.append(shape("text", {class: "beyond", x: LEFT + (at + 0.5) * size, y: TOP - 4, "text-anchor": "middle"}, `↑${shownNumber(total)}`));
  });
  followPointer(svg, height, across, (time, event) => {
    const at = Math.min(count - 1, Math.floor((time - begin) / width));
    const from = begin + at * width;
    showTip(event, [[null, `${shownTime(from)} to ${shownTime(from + width)}: ${shownNumber(totals[at])} commits`],
      ...bars.map((one, i) => [`b${i % COLOURS}`, `${one.name}: ${shownNumber(one.values[at])}`])
        .filter((_, i) => bars[i].values[at] > 0)]);
    return from + width / 2;
  });
  return svg;
}

/* bars: [{name, value, text}], one below the other, the longest first; by their logarithms if one would flatten the rest. */
function rankPlot(bars, label) {
  const left = Math.min(240, 0.4 * WIDTH), row = 22, height = bars.length * row + 8, letters = Math.floor(left / 7);
  const isFlat = mostOf(bars.map((bar) => bar.value))[1] < bars[0].value, size = isFlat ? Math.log1p : (value) => value;
  const svg = paper(height, label);
  bars.forEach((bar, i) => {
    const width = Math.max(1, ((WIDTH - left - 90) * size(bar.value)) / size(bars[0].value)), y = 4 + i * row;
    const name = bar.name.length > letters ? `${bar.name.slice(0, letters - 1)}…` : bar.name;
    svg.append(shape("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, name),
      shape("rect", {class: "f0", x: left, y: y + 2, width, height: row - 6}, shape("title", {}, bar.name)),
      shape("text", {x: left + width + 6, y: y + 14}, bar.text));
  });
  return element("div", null, element("h3", null, `${label}${isFlat ? ", logarithmic" : ""}`), svg);
}

function legend(names) {
  return element("ul", {class: "legend"}, ...names.map((name, i) =>
    element("li", null, element("span", {class: `swatch b${i % COLOURS}`}), name)));
}
