
/* The page: each section from its part of the data. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const LINES = new Map(DATA.lines.map(([group, count, lines, generations]) => [group, {count, lines, generations}]));
const SUGGESTIONS = 8;
const LAGS_PLOTTED = 20;
const WRITER_COLUMNS = ["group", "bytes", "bytes_share", "garbage_bytes", "garbage_ratio", "records", "commits",
  "tombstones", "noop_commits", "commits_per_second", "peak_commits_per_second", "peak_minute_timestamp_ms"];
const REBALANCE_COLUMNS = ["group", "rebalances", "generation", "type", "state", "members", "last_activity_timestamp_ms"];
const GROUP_COLUMNS = ["group", "type", "protocol_type", "state", "members", "offsets", "pending",
  "last_commit_timestamp_ms", "last_activity_timestamp_ms", "offsets_partition", "group_base64"];

function section(id, ...children) {
  document.getElementById(id).append(...children);
}

function showFacts() {
  const {sources, made_ms: madeMs, version, ...facts} = DATA.about;
  document.getElementById("source").textContent =
    `${sources.map(visible).join(" · ")} — offsets-log ${version}, ${shownTime(madeMs)}`;
  const open = DATA.tables.transactions.rows.length;
  section("facts", ...Object.entries({...facts, open_transactions: open}).map(([name, value]) =>
    element("div", null, element("dt", null, titleOf(name)), element("dd", null, shownCell(name, value)))));
}

function showProblems() {
  const table = DATA.tables.problems;
  if (table.rows.length === 0) section("problems", element("p", null, "Nothing was found wrong, and nothing was left unread of what was asked for."));
  else section("problems", new DataTable(table, {searched: "problem",
    className: (name, value) => (name === "severity" ? value : "")}).made);
}

function showCommits() {
  const {begin_ms: begin, width_ms: width, bars, outside} = DATA.commits;
  if (bars.length === 0) { section("commits", element("p", {class: "hint"}, "No commits with a time.")); return; }
  const named = bars.map((bar) => ({name: bar.group === null ? "all others" : shownName(bar.group), values: bar.commits}));
  section("commits", barPlot(named, begin, width, "commits over time"), legend(named.map((bar) => bar.name)));
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
    if (bars.length > 0) section("lags", element("h3", null, label), rankPlot(bars, label));
  }
  section("lags", new DataTable(table, {order: ["lag", true], choose}).made, element("p", {class: "hint"},
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
  place.replaceChildren(element("h3", null, shownName(name)));
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
        `${left > 0 ? ", those with the most commits; `offsets-log history` has all" : ""}. A line ends with what is ` +
        "served; it breaks where the offset was deleted."),
      element("div", {class: "controls"}, element("label", null, box, " each from its first offset on")),
      stepPlot(series, "committed offsets over time"), legend(series.map((one) => one.name)), lastTable(found.lines));
  }
  if (found.generations !== null) {
    const [differences, generations] = found.generations;
    const texts = generations.map((one) => (one === null ? "none" : shownNumber(one)));
    place.append(element("h3", null, "Generations"), stepPlot(
      [{name: "generation", times: timesOf(differences), values: generations, texts}], "generations over time", 160));
  }
}

function lastTable(lines) {
  const rows = lines.map(([topic, partition, commits, differences, offsets]) =>
    [topic, partition, offsets.at(-1), timesOf(differences).at(-1), commits]);
  return new DataTable({columns: ["topic", "partition", "committed_offset", "last_commit_timestamp_ms", "commits"], rows},
    {searched: "topic"}).made;
}

function choose(name) {
  history.replaceState(null, "", `#group=${encodeURIComponent(name.toWellFormed ? name.toWellFormed() : name)}`);
  showGroup(name);
  document.getElementById("group").scrollIntoView({behavior: "smooth"});
}

/* Names that hold what is typed: as many as there is room for, the busiest first. */
function showChoice(names) {
  const search = element("input", {type: "search", placeholder: "part of a group's name", "aria-label": "group"});
  const found = element("div", {class: "controls", id: "suggestions"});
  const suggest = () => {
    const wanted = search.value.toLowerCase();
    const some = names.filter((name) => name.toLowerCase().includes(wanted));
    found.replaceChildren(...some.slice(0, SUGGESTIONS).map((name) => element("button",
      {type: "button", class: "suggestion", click: () => choose(name)}, shownName(name))),
      `${shownNumber(Math.min(some.length, SUGGESTIONS))} of ${shownNumber(some.length)} groups with something to plot`);
  };
  search.addEventListener("input", suggest);
  suggest();
  document.getElementById("choice").append(search, found);
}

function namesByCommits(table) {
  const group = table.columns.indexOf("group"), commits = table.columns.indexOf("commits");
  const rows = [...table.rows].sort((left, right) => compareCells(right[commits] ?? 0, left[commits] ?? 0));
  return [...new Set(rows.map((row) => row[group]))].filter((name) => LINES.has(name));
}

/* The rows of groups of which something is known: that they exist by their type, that they wrote by their bytes. */
function groupsWith(column) {
  const {columns, rows} = DATA.tables.groups, at = columns.indexOf(column);
  return {columns, rows: rows.filter((row) => row[at] !== null && row[at] !== undefined)};
}

function showTables() {
  const {transactions, partitions} = DATA.tables;
  section("groups", new DataTable(groupsWith("type"), {shown: GROUP_COLUMNS, choose}).made);
  section("writers", new DataTable(groupsWith("bytes"), {shown: WRITER_COLUMNS, order: ["bytes", true], choose}).made);
  section("rebalances", new DataTable(groupsWith("rebalances"),
    {shown: REBALANCE_COLUMNS, order: ["rebalances", true], choose}).made);
  section("transactions", new DataTable(transactions, {searched: "groups"}).made);
  section("partitions", new DataTable(partitions).made);
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
  showFacts();
  showProblems();
  showCommits();
  showLags();
  showTables();
  const names = namesByCommits(DATA.tables.groups);
  showChoice(names);
  const asked = askedFor();
  const first = LINES.has(asked) ? asked : names[0];
  if (first !== undefined) showGroup(first);
  document.body.dataset.isReady = "true";
}

start();
