
/* The page: each section from its part of the data. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const LINES = new Map(DATA.lines.map(([group, count, lines, generations]) => [group, {count, lines, generations}]));
const OFFSETS = new Map(Object.entries(DATA.offsets.groups));
const PROBLEMS_SHOWN = 8;
const LAGS_PLOTTED = 20;
const WRITER_COLUMNS = ["group", "bytes", "bytes_share", "garbage_bytes", "garbage_ratio", "records", "commits",
  "tombstones", "noop_commits", "commits_per_second", "peak_commits_per_second", "peak_minute_timestamp_ms"];
const REBALANCE_COLUMNS = ["group", "rebalances", "generation", "type", "state", "members", "last_activity_timestamp_ms"];
const GROUP_COLUMNS = ["group", "state", "lag", "last_commit_timestamp_ms", "commit_age_ms", "members", "offsets",
  "pending", "type", "last_activity_timestamp_ms", "offsets_partition", "protocol_type", "group_base64"];
const OFFSET_COLUMNS = ["topic", "partition", "committed_offset", "lag", "last_commit_timestamp_ms", "pending_offset",
  "remark"];
const REMARKABLE = ["deleted", "only in open transactions", "Dead"];
const REDRAWN = new Map();

/* Something that is drawn again when the page has another width. */
function drawn(key, place, make) {
  const draw = () => place.replaceChildren(make());
  REDRAWN.set(key, draw);
  draw();
  return place;
}

function section(id, ...children) {
  document.getElementById(id).append(...children);
}

function showFacts() {
  const {sources, made_ms: madeMs, version, when, whose, trust, severity, ...facts} = DATA.about;
  const texts = {when, whose, trust, source: `${sources.map(visible).join(" · ")} — offsets-log ${version}, ${shownTime(madeMs)}`};
  for (const [id, text] of Object.entries(texts)) document.getElementById(id).textContent = text;
  document.getElementById("trust").className = severity ?? "whole";
  const open = DATA.tables.transactions.rows.length;
  section("facts", ...Object.entries({...facts, open_transactions: open}).map(([name, value]) =>
    element("div", null, element("dt", null, titleOf(name)), element("dd", null, shownCell(name, value)))));
}

/* The worst first, each with its place; further ones behind a click. */
function showProblems() {
  const {columns, rows} = DATA.tables.problems;
  if (rows.length === 0) { document.getElementById("problems").remove(); return; }
  const items = rows.map((cells) => {
    const row = Object.fromEntries(columns.map((name, i) => [name, cells[i]]));
    const place = ["file", "position", "record_offset"].filter((name) => row[name] !== null && row[name] !== undefined)
      .map((name) => (name === "file" ? shownName(row[name]) : `${titleOf(name)} ${shownNumber(row[name])}`)).join(", ");
    return element("li", null, element("span", {class: `severity ${row.severity}`}, row.severity), " ", shownName(row.problem),
      element("span", {class: "hint"}, place === "" ? "" : ` ${place}`));
  });
  section("problems", element("ul", {class: "problems"}, ...items.slice(0, PROBLEMS_SHOWN)));
  if (items.length > PROBLEMS_SHOWN) {
    section("problems", element("details", null,
      element("summary", null, `${shownNumber(items.length - PROBLEMS_SHOWN)} more`),
      element("ul", {class: "problems"}, ...items.slice(PROBLEMS_SHOWN))));
  }
}

function showCommits() {
  const {begin_ms: begin, width_ms: width, bars, outside} = DATA.commits;
  if (bars.length === 0) { section("commits", element("p", {class: "hint"}, "No commits with a time.")); return; }
  const named = bars.map((bar) => ({name: bar.group === null ? "all others" : shownName(bar.group), values: bar.commits}));
  section("commits", drawn("commits", element("div"), () => barPlot(named, begin, width, "commits over time")),
    legend(named.map((bar) => bar.name)));
  if (outside > 0) {
    section("commits", element("p", {class: "hint"}, `${shownNumber(outside)} commits lie before or behind this plot.`));
  }
}

/* Groups that are furthest behind, in offsets and in time; no section where the copy had no logs of other topics. */
function showLags() {
  const table = DATA.tables.lags;
  if (table.rows.length === 0) { document.getElementById("lags").remove(); return; }
  for (const [column, label] of [["lag", "offsets behind"], ["max_behind_ms", "time behind"]]) {
    const name = table.columns.indexOf("group"), at = table.columns.indexOf(column);
    const bars = table.rows.filter((row) => at >= 0 && Number(row[at] ?? 0) > 0)
      .sort((left, right) => compareCells(right[at], left[at])).slice(0, LAGS_PLOTTED)
      .map((row) => ({name: shownName(row[name]), value: Number(row[at]), text: shownCell(column, row[at])}));
    if (bars.length > 0) section("lags", drawn(column, element("div"), () => rankPlot(bars, label)));
  }
  section("lags", new DataTable(table, {order: ["lag", true], choose, file: "lag"}).made, element("p", {class: "hint"},
    "Lag is counted to the ends of the logs in this copy. Time behind is the age of the oldest record not yet read, " +
    "until the newest record of these logs."));
}

function seriesOf(lines, isRelative) {
  return lines.map(([topic, partition, , differences, offsets]) => {
    const first = isRelative ? Number(offsets.find((offset) => offset !== null) ?? 0) : 0;
    return {
      name: `${shownName(topic)} ${partition}`,
      times: timesOf(differences),
      values: offsets.map((offset) => (offset === null ? null : Number(offset) - first)),
      texts: offsets.map((offset) => (offset === null ? "none" : shownNumber(offset))),
    };
  });
}

function timesOf(differences) {
  let time = 0;
  return differences.map((difference) => { time += Number(difference); return time; });
}

function showGroup(name, isRelative = false) {
  const place = document.getElementById("chosen"), found = LINES.get(name);
  place.replaceChildren(element("h3", null, shownName(name)), ...offsetsOf(name, found));
  place.dataset.group = name;
  if (found === undefined) { place.append(element("p", {class: "hint"}, "No commits with a time.")); return; }
  if (found.lines.length > 0) {
    const box = element("input", {type: "checkbox"});
    box.checked = isRelative;
    box.addEventListener("change", () => showGroup(name, box.checked));
    const series = seriesOf(found.lines, isRelative);
    const left = found.count - series.length;
    place.append(
      element("p", {class: "hint"}, `Committed offsets of ${series.length} of ${found.count} partitions` +
        `${left > 0 ? ", those with the most commits" : ""}. A line ends with what is served; it breaks where the ` +
        "offset was deleted."),
      element("div", {class: "controls"}, element("label", null, box, " change since the first commit")),
      drawn("offsets", element("div"), () => stepPlot(series, "committed offsets over time")),
      legend(series.map((one) => one.name)));
  }
  if (found.generations !== null) {
    const [differences, generations] = found.generations;
    const texts = generations.map((one) => (one === null ? "none" : shownNumber(one)));
    const line = {name: "generation", times: timesOf(differences), values: generations, texts};
    place.append(element("h3", null, "Generations"),
      drawn("generations", element("div"), () => stepPlot([line], "generations over time", 160)));
  }
}

/* A table of all offsets of a group, and of those that are plotted and were deleted. */
function offsetsOf(name, found) {
  const packed = OFFSETS.get(name);
  if (packed === undefined) {
    return [element("p", {class: "hint"}, "This page has no room for its offsets: offsets-log offsets -g lists them.")];
  }
  const rows = packed.map(([topic, partition, offset, time, lag, pending]) =>
    [DATA.offsets.topics[topic], partition, offset, lag, time, pending, offset === null ? "only in an open transaction" : null]);
  const there = new Set(rows.map(([topic, partition]) => JSON.stringify([topic, partition])));
  for (const [topic, partition, , differences, offsets] of found?.lines ?? []) {
    if (offsets.at(-1) === null && !there.has(JSON.stringify([topic, partition]))) {
      rows.push([topic, partition, null, null, timesOf(differences).at(-1), null, "deleted"]);
    }
  }
  const shown = OFFSET_COLUMNS.filter((_, at) => rows.some((row) => row[at] !== null));
  return [new DataTable({columns: OFFSET_COLUMNS, rows}, {shown, searched: "topic", file: "offsets"}).made];
}

function choose(name) {
  history.replaceState(null, "", `#group=${encodeURIComponent(name.toWellFormed ? name.toWellFormed() : name)}`);
  showGroup(name);
  document.getElementById("group").scrollIntoView({behavior: "smooth"});
}

/* The rows of groups of which something is known: that they exist by their type, that they wrote by their bytes. */
function groupsWith(column) {
  const {columns, rows} = DATA.tables.groups, at = columns.indexOf(column);
  return {columns, rows: rows.filter((row) => row[at] !== null && row[at] !== undefined)};
}

function showTables() {
  const {groups, transactions, partitions} = DATA.tables;
  const className = (name, value) => (name === "state" && REMARKABLE.includes(value) ? "doubt" : "");
  section("groups", new DataTable(groups, {shown: GROUP_COLUMNS, choose, className, file: "groups"}).made);
  section("writers", new DataTable(groupsWith("bytes"),
    {shown: WRITER_COLUMNS, order: ["bytes", true], choose, file: "writers"}).made);
  section("rebalances", new DataTable(groupsWith("rebalances"),
    {shown: REBALANCE_COLUMNS, order: ["rebalances", true], choose, file: "rebalances"}).made);
  section("transactions", new DataTable(transactions, {searched: "groups", file: "transactions"}).made);
  section("partitions", new DataTable(partitions, {searched: null, file: "partitions"}).made);
}

/* The group with the most commits. */
function busiest() {
  const {columns, rows} = DATA.tables.groups, group = columns.indexOf("group"), commits = columns.indexOf("commits");
  return [...rows].sort((left, right) => compareCells(right[commits] ?? 0, left[commits] ?? 0))[0]?.[group];
}

/* The group that the address names, which is kept there to be sent to others. */
function askedFor() {
  try {
    return location.hash.startsWith("#group=") ? decodeURIComponent(location.hash.slice("#group=".length)) : null;
  } catch {
    return null;
  }
}

function start() {
  fitPlots();
  showFacts();
  showProblems();
  showTables();
  showCommits();
  showLags();
  const asked = askedFor();
  const first = LINES.has(asked) || OFFSETS.has(asked) ? asked : busiest();
  if (first !== undefined) showGroup(first);
  window.addEventListener("resize", () => { if (fitPlots()) for (const draw of REDRAWN.values()) draw(); });
  document.body.dataset.isReady = "true";
}

start();
