
/* Plots over time: steps for offsets and generations, stacked bars for counts. A pointer over one tells its numbers. */

const WIDTH = 1000, LEFT = 84, RIGHT = 12, TOP = 10, BOTTOM = 24, COLOURS = 8;
const SVG = "http://www.w3.org/2000/svg";

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
  const span = across.most - across.least, count = 4;
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
  const svg = paper(height, label);
  const times = series.flatMap((one) => one.times);
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  if (times.length === 0 || values.length === 0) return element("p", {class: "hint"}, "Nothing to plot.");
  const extent = (numbers) => numbers.reduce(([low, high], n) => [Math.min(low, n), Math.max(high, n)], [Infinity, -Infinity]);
  const across = scale(...extent(times), LEFT, WIDTH - RIGHT, 5);
  const up = scale(...extent(values), height - BOTTOM, TOP, 5);
  drawAxes(svg, height, across, up);
  series.forEach((one, i) => {
    const dashed = i >= COLOURS ? " dashed" : "";
    svg.append(shape("path", {class: `line s${i % COLOURS}${dashed}`, d: stepPath(one, across, up)}));
    one.times.forEach((time, at) => {
      if (one.values[at] === null || one.times.length > 60) return;
      svg.append(shape("circle", {class: `f${i % COLOURS}`, cx: across.place(time), cy: up.place(one.values[at]), r: 2.2}));
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
  const up = scale(0, Math.max(1, ...totals), height - BOTTOM, TOP, 4);
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

/* bars: [{name, value, text}], one below the other, the longest first. */
function rankPlot(bars, label) {
  const row = 22, left = 240, height = bars.length * row + 8, most = bars[0].value;
  const svg = paper(height, label);
  bars.forEach((bar, i) => {
    const width = Math.max(1, ((WIDTH - left - 160) * bar.value) / most), y = 4 + i * row;
    const name = bar.name.length > 32 ? `${bar.name.slice(0, 31)}…` : bar.name;
    svg.append(shape("text", {x: left - 8, y: y + 14, "text-anchor": "end"}, name),
      shape("rect", {class: "f0", x: left, y: y + 2, width, height: row - 6}, shape("title", {}, bar.name)),
      shape("text", {x: left + width + 6, y: y + 14}, bar.text));
  });
  return svg;
}

function legend(names) {
  return element("ul", {class: "legend"}, ...names.map((name, i) =>
    element("li", null, element("span", {class: `swatch b${i % COLOURS}`}), name)));
}
