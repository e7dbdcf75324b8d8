// Measures a conversation of 20,000 turns: the time until its end is painted, the number of nodes, and whether scrolling and jumping are
// smooth. BENCH_ROUNDS is the number of rounds.
import { test } from "node:test";
import { until } from "../browser/desk.mjs";
import { summary } from "./probe.mjs";
import { add } from "./report.mjs";
import { inChromium, inWindow, scrolled, timed } from "./surface.mjs";

const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const title = "The long one";
const wanted = new RegExp(process.env.BENCH_SURFACES ?? ".");

for (const open of [inChromium, inWindow]) {
  test(`the long conversation, ${open.name}`, { skip: !wanted.test(open.name) }, async (t) => {
    const surface = await open(t, { filled: true });
    const key = (name) => `${surface.name}.${name}`;

    const ready = () => until("the list", () => surface.run((name) => [...document.querySelectorAll("[role=treeitem]")].some((row) => row.textContent.includes(name)), title));
    for (let round = 0; round < rounds; round++) {
      await surface.run(() => localStorage.removeItem("deskhand.last"));
      await surface.reload();
      await ready();
      await surface.run((name) => {
        const row = [...document.querySelectorAll("[role=treeitem]")].find((one) => one.textContent.includes(name));
        window.probe.time("open", () => row.click(), () => window.probe.shows(name));
      }, title);
      add(key("open"), await timed(surface, "open"));
      const { elements, nodes } = await surface.run(() => window.probe.nodes());
      add(key("open_elements"), elements);
      add(key("open_nodes"), nodes);
    }

    // From the beginning of the page to the transcript; the program runs already.
    for (let round = 0; round < rounds; round++) {
      await surface.reload();
      add(key("cold"), await until("the transcript", () => surface.run(() => performance.getEntriesByName("transcript")[0]?.startTime)));
    }

    await surface.run(() => {
      window.probe.record();
      window.probe.scroll(-90, 500);
    });
    await scrolled(surface);
    let seen = await surface.run(() => window.probe.stop());
    add(key("up_worst"), summary(seen.gaps).worst);
    add(key("up_p99"), summary(seen.gaps).p99);
    add(key("up_over"), summary(seen.gaps).over);
    add(key("up_elements"), seen.most);
    add(key("up_blank"), seen.blank);
    add(key("up_jumps"), seen.jumps);

    // Down again, through the rows that were removed from the page on the way up.
    await surface.run(() => {
      window.probe.record();
      window.probe.scroll(90, 500);
    });
    await scrolled(surface);
    seen = await surface.run(() => window.probe.stop());
    add(key("down_worst"), summary(seen.gaps).worst);
    add(key("down_p99"), summary(seen.gaps).p99);
    add(key("down_over"), summary(seen.gaps).over);
    add(key("down_elements"), seen.most);
    add(key("down_blank"), seen.blank);
    add(key("down_jumps"), seen.jumps);

    // To places that a search finds, and back to the end.
    for (const n of [2500, 10500, 17500].slice(0, rounds)) {
      const word = `Landmark${n}`;
      await surface.run(() => window.dispatchEvent(new KeyboardEvent("keydown", { key: "F", code: "KeyF", ctrlKey: true, shiftKey: true, bubbles: true })));
      await until("the field", () => surface.run(() => !!document.querySelector("main input")));
      await surface.run((text) => {
        const field = document.querySelector("main input");
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }, word);
      await until(word, () => surface.run((text) => [...document.querySelectorAll("main mark")].some((mark) => mark.textContent.includes(text)), word));
      await surface.run((text) => {
        const mark = [...document.querySelectorAll("main mark")].find((one) => one.textContent.includes(text));
        const hit = mark.closest("[role=option], button, a, li");
        const shown = () => {
          const log = document.querySelector("[role=log]");
          const row = [...(log?.querySelectorAll("[data-row=user]") ?? [])].find((one) => one.textContent.includes(text));
          const box = row?.getBoundingClientRect();
          return !!box && box.top >= 0 && box.top < innerHeight;
        };
        window.probe.time("jump", () => hit.click(), shown);
      }, word);
      add(key("jump"), await timed(surface, "jump"));
      await surface.run(() => {
        const log = document.querySelector("[role=log]");
        window.probe.time("tail", () => log.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true })),
          () => log.textContent.includes("Step 19999") && log.scrollHeight - log.scrollTop - log.clientHeight < 2);
      });
      add(key("tail"), await timed(surface, "tail"));
    }
  });
}
