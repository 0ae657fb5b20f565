
"use strict";

/* Values as people read them. Names are anybody's: they become text nodes, and what cannot be seen in them escapes. */

const NUMBER = new Intl.NumberFormat("en");
const MAX_TIME_MS = 8.64e15;

function visible(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/gu, (character) =>
    character === "\\" ? "\\\\" : `\\u{${character.codePointAt(0).toString(16)}}`);
}

function shownName(name) {
  return name === "" ? "(empty)" : visible(name);
}

function shownTime(ms) {
  const number = Number(ms);
  if (!(Math.abs(number) <= MAX_TIME_MS)) return String(ms);
  return new Date(number).toISOString().replace("T", " ");
}

/* Integers that JavaScript does not have come as texts, and are shown as they are. */
function shownNumber(value) {
  return typeof value === "number" ? NUMBER.format(value) : String(value);
}

function shownBytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let number = Number(value), unit = 0;
  while (number >= 1000 && unit < units.length - 1) { number /= 1000; unit += 1; }
  return `${unit === 0 ? number : number.toFixed(number < 10 ? 2 : 1)} ${units[unit]}`;
}

function shownDuration(ms) {
  const units = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];
  const found = units.find(([, size]) => Number(ms) >= size);
  return found === undefined ? `${ms} ms` : `${(Number(ms) / found[1]).toFixed(1)} ${found[0]}`;
}

function kindOf(column) {
  if (column.endsWith("timestamp_ms")) return "time";
  if (column.endsWith("behind_ms") || column.endsWith("age_ms")) return "duration";
  if (column.endsWith("bytes")) return "bytes";
  if (column.endsWith("ratio") || column.endsWith("share")) return "ratio";
  return "plain";
}

function shownCell(column, value) {
  if (value === null || value === undefined) return "-";
  switch (kindOf(column)) {
    case "time": return shownTime(value);
    case "bytes": return shownBytes(value);
    case "duration": return shownDuration(value);
    case "ratio": return `${(100 * value).toFixed(1)} %`;
    default:
      if (Array.isArray(value)) return value.map(shownName).join(", ");
      return typeof value === "number" ? shownNumber(value) : shownName(value);
  }
}

function titleOf(column) {
  return column.replace(/_timestamp_ms$/, "").replace(/_bytes$/, "").replace(/_ms$/, "").replaceAll("_", " ");
}

/* element("td", {class: "number"}, "text", other) */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
