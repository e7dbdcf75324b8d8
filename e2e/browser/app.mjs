// The app as a person sees it: its parts by role and name, and the actions that many tests repeat.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { shoot } from "./desk.mjs";

export class App {
  constructor(page, desk) {
    this.page = page;
    this.desk = desk;
    this.log = page.getByRole("log", { name: "Transcript" });
    this.composer = page.getByRole("textbox", { name: "Message" });
    this.request = page.getByTestId("request");
    this.footers = this.log.locator("[data-row=footer]");
    this.exit = this.log.getByRole("alert", { name: "The agent ended" });
    this.sidebar = page.getByRole("navigation", { name: "Sidebar" });
    this.status = page.getByRole("group", { name: "Status" });
    this.statusReport = page.getByRole("dialog", { name: "Status" });
  }

  /** Opens the app by the link of the start and, when told, begins a conversation in the desk's directory. */
  static async open(desk, { agent, ...options } = {}) {
    const app = new App(await desk.page(desk.link, options), desk);
    await app.page.getByRole("heading", { name: /conversation$/ }).first().waitFor();
    if (agent) await app.begin(agent, desk.work);
    return app;
  }

  button(name, within = this.page) {
    return within.getByRole("button", { name, exact: true });
  }

  /**
   * Begins a conversation without a message, as programs do, and shows it; place = where its agent runs. People write a message: see write().
   */
  async begin(agent, directory, { place } = {}) {
    const { items } = await this.desk.api("GET", place ? `/client/places/${place}/agents` : "/client/agents");
    const { id: of } = items.find(({ name }) => name === agent);
    const { id } = await this.desk.api("POST", "/client/sessions", { agent: of, cwd: directory.replace(/^~(?=\/)/, this.desk.home), ...(place ? { place } : {}) });
    await this.show(id);
  }

  /** Shows a conversation by a click in the list. */
  async show(id) {
    const row = this.sidebar.locator(`[data-key="${id}"]`);
    if (!(await this.sidebar.isVisible())) await this.button("Show or hide the sidebar").click();
    await row.click();
    await this.log.waitFor();
    await this.composer.waitFor();
  }

  /** Shows a part of the settings. */
  async settingsOf(part) {
    const parts = this.page.getByRole("navigation", { name: "Parts" });
    if (!(await parts.isVisible())) await this.page.keyboard.press("Control+Comma");
    await parts.getByRole("button", { name: part, exact: true }).click();
  }

  /** A chip of the composer of a new conversation. */
  chip(name) {
    return this.page.getByRole("button", { name: new RegExp(`^${name}: `) });
  }

  /** Chooses in a chip. */
  async choose(chip, option) {
    await this.chip(chip).click();
    await this.page.getByRole("listbox", { name: chip }).getByRole("option", { name: option }).click();
  }

  /** Chooses a directory in the browser's dialog, which stands open. */
  async chooseDirectory(directory) {
    const dialog = this.page.getByRole("dialog", { name: "Choose a directory" });
    await dialog.getByRole("combobox", { name: "Path" }).fill(directory);
    await this.button("Choose", dialog).click();
    await dialog.waitFor({ state: "hidden" });
  }

  /** Begins a conversation as people do: by a message, in the composer that is shown. */
  async write(text, { agent, directory } = {}) {
    if (directory) {
      await this.choose("Directory", "Choose a directory…");
      await this.chooseDirectory(directory);
    }
    if (agent) await this.choose("Agent", new RegExp(`^${agent}`));
    await this.send(text);
    await this.log.waitFor();
  }

  /** Sends a prompt by keyboard. */
  async send(text) {
    await this.composer.fill(text);
    await this.composer.press("Enter");
  }

  /** Sends a prompt and waits for the end of its turn; gives the footer. */
  async turn(text, end = "Done") {
    // Not counted: rows far above are removed from a long transcript.
    await this.footers.evaluateAll((rows) => rows.forEach((row) => (row.dataset.seen = "")));
    await this.send(text);
    const footer = this.log.locator("[data-row=footer]:not([data-seen])").last();
    await footer.getByText(end, { exact: true }).waitFor();
    return footer;
  }

  /**
   * What the page would do after so long waits until it is let go: an offer that stands for five seconds, a mark of two and a half. A busy
   * machine does not get there in time.
   */
  async holds(after) {
    await this.page.evaluate((after) => {
      if (!window.held) {
        const real = window.setTimeout;
        window.held = new Map();
        window.setTimeout = (act, ms, ...more) => (window.held.has(ms) ? -window.held.get(ms).push(act) : real(act, ms, ...more)); // nobody else's number
      }
      if (!window.held.has(after)) window.held.set(after, []);
    }, after);
    return () => this.page.evaluate((after) => {
      const acts = window.held.get(after);
      window.held.delete(after);
      for (const act of acts) act();
    }, after);
  }

  /** A key twice, so quickly that it counts as that. */
  async twice(key) {
    await this.composer.evaluate((field, key) => {
      for (let n = 0; n < 2; n++) field.dispatchEvent(new KeyboardEvent("keydown", { key, code: key, bubbles: true, cancelable: true }));
    }, key);
  }

  /** Waits until the keys of the card that stands there count, by the clock that it goes by: nothing else shows it. */
  async unguarded() {
    const since = await this.page.evaluate(() => performance.now());
    await this.page.waitForFunction((since) => performance.now() - since > 400, since);
  }

  /** The text of the transcript without what changes with time. */
  async transcript() {
    const texts = await this.log.locator("[data-row]").evaluateAll((rows) =>
      rows.map((row) => {
        const copy = row.cloneNode(true);
        for (const passing of copy.querySelectorAll("time, [data-row=footer] button, [data-remote] button")) passing.remove(); // a picture's comes when it is seen
        if (row.dataset.row === "footer") for (const button of copy.querySelectorAll("button")) button.remove();
        return `${row.dataset.row}: ${copy.textContent.replace(/\s+/g, " ").trim()}`;
      }));
    return texts;
  }
}

// axe runs the rule that a name holds the words that are shown only when it is asked to.
const allRules = { rules: { "label-content-name-mismatch": { enabled: true } } };
// Rules whose results may differ between light and dark.
const colourRules = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } };
const axeFile = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What axe finds wrong on a page, a line a violation. A page gets axe once: compiling axe takes longer than a run. */
export async function violations(page, options = allRules) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(fs.readFileSync(axeFile, "utf8"));
  return page.evaluate(async (options) => {
    const { violations } = await window.axe.run(document, { ...options, resultTypes: ["violations"] }); // elements that pass need no description
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) => {
      const why = [...any, ...all, ...none].map(({ message }) => message).join("; ");
      return `${id}: ${html.slice(0, 160)} (${why.slice(0, 160)})`;
    }));
  }, options);
}

/** Looks at one screen after the other, as people with and without good eyes do; done() tells what was found. */
export class Looks {
  #found = new Map();

  /** Asks axe about a screen in dark and in light. */
  async at(page, name) {
    for (const colorScheme of ["dark", "light"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await shoot(page, `${name}-${colorScheme}`);
      for (const where of await violations(page, colorScheme === "dark" ? colourRules : allRules)) {
        this.#found.set(where, [...(this.#found.get(where) ?? []), `${name}-${colorScheme}`]);
      }
    }
  }

  done() {
    assert.equal([...this.#found].map(([where, screens]) => `${where}\n  on ${screens.join(", ")}`).join("\n"), "");
  }
}
