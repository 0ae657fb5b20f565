
/* Tables that sort by a click on a column, are searched, and show a page of rows at a time, however many there are. */

const ROWS = 20;
const FEW = 5;

function csvField(value) {
  const text = value === null || value === undefined ? "" : Array.isArray(value) ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function compareCells(left, right) {
  if (left === right) return 0;
  if (left === null || left === undefined) return 1;
  if (right === null || right === undefined) return -1;
  if (typeof left === "number" || typeof right === "number") return Number(left) - Number(right);
  return String(left) < String(right) ? -1 : 1;
}

class DataTable {
  /* table: {columns, rows}; shown: columns to show; order: [column, descending]; choose: what to do with a row clicked;
     file: the name of its CSV */
  constructor(table, {shown = table.columns, order = null, choose = null, searched = "group", className = null, file}) {
    this.columns = shown.filter((name) => table.columns.includes(name));
    this.at = new Map(table.columns.map((name, i) => [name, i]));
    this.all = table.rows;
    this.rows = table.rows;
    this.choose = choose;
    this.name = searched;
    this.searched = this.at.get(searched);
    this.className = className;
    this.file = file;
    this.first = 0;
    this.isNumber = this.columns.map((name) => kindOf(name) !== "time" &&
      table.rows.every((row) => row[this.at.get(name)] === null || typeof row[this.at.get(name)] === "number"));
    this.order = order && this.at.has(order[0]) ? order : null;
    this.body = element("tbody");
    this.head = element("tr");
    this.count = element("span");
    this.back = element("button", {type: "button", click: () => this.turn(-1)}, "‹ back");
    this.on = element("button", {type: "button", click: () => this.turn(1)}, "more ›");
    this.made = element("div", null, this.controls(),
      element("div", {class: "scroll"}, element("table", null, element("thead", null, this.head), this.body)));
    this.arrange();
  }

  controls() {
    const made = element("div", {class: "controls"});
    if (this.searched !== undefined && this.all.length > FEW) {
      const search = element("input", {type: "search", placeholder: "part of a name", "aria-label": "search"});
      search.addEventListener("input", () => { this.search(search.value); });
      made.append(search);
    }
    made.append(this.count);
    if (this.all.length > ROWS) made.append(this.back, this.on);
    if (this.all.length > 0) made.append(element("button", {type: "button", click: () => this.save()}, "CSV"));
    return made;
  }

  /* All rows that are found, in their order, with values as they are. */
  save() {
    const lines = [this.columns, ...this.rows.map((row) => this.columns.map((name) => row[this.at.get(name)]))];
    const text = lines.map((cells) => `${cells.map(csvField).join(",")}\r\n`).join("");
    const address = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
    element("a", {href: address, download: `${this.file}.csv`}).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }

  search(text) {
    const wanted = text.toLowerCase();
    this.rows = wanted === "" ? this.all
      : this.all.filter((row) => String(row[this.searched]).toLowerCase().includes(wanted));
    this.first = 0;
    this.arrange();
  }

  sort(column) {
    const isSame = this.order !== null && this.order[0] === column;
    this.order = [column, isSame ? !this.order[1] : this.isNumber[this.columns.indexOf(column)]];
    this.first = 0;
    this.arrange();
  }

  turn(pages) {
    this.first += pages * ROWS;
    this.draw();
  }

  arrange() {
    if (this.order !== null) {
      const [column, isDescending] = this.order, at = this.at.get(column), sign = isDescending ? -1 : 1;
      this.rows = [...this.rows].sort((left, right) => {
        const isNull = (row) => row[at] === null || row[at] === undefined;
        if (isNull(left) || isNull(right)) return isNull(left) - isNull(right);
        return sign * compareCells(left[at], right[at]);
      });
    }
    this.draw();
  }

  draw() {
    this.head.replaceChildren(...this.columns.map((name, i) => element("th",
      {scope: "col", class: this.isNumber[i] ? "number" : null, "aria-sort": this.sortOf(name)},
      element("button", {type: "button", click: () => this.sort(name)}, titleOf(name)))));
    const page = this.rows.slice(this.first, this.first + ROWS);
    this.body.replaceChildren(...page.map((row) => this.row(row)));
    this.count.textContent = this.rows.length === 0 ? "none"
      : `${shownNumber(this.first + 1)} to ${shownNumber(this.first + page.length)} of ${shownNumber(this.rows.length)}`;
    this.back.disabled = this.first === 0;
    this.on.disabled = this.first + ROWS >= this.rows.length;
  }

  sortOf(name) {
    if (this.order === null || this.order[0] !== name) return null;
    return this.order[1] ? "descending" : "ascending";
  }

  row(row) {
    const cells = this.columns.map((name, i) => {
      const value = row[this.at.get(name)];
      const kind = kindOf(name) === "time" ? "time" : this.isNumber[i] ? "number" : "text";
      const text = shownCell(name, value), more = this.className ? this.className(name, value) : "";
      if (name !== this.name) return element("td", {class: `${kind} ${more}`}, text);
      return element("td", {class: `text name ${more}`}, element("div", {title: text}, text));
    });
    if (this.choose === null) return element("tr", null, ...cells);
    const choose = () => this.choose(row[this.at.get("group")]);
    return element("tr", {class: "choosable", tabindex: "0", click: choose,
      keydown: (event) => { if (event.key === "Enter") choose(); }}, ...cells);
  }
}
