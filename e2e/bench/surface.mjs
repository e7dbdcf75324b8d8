// The surfaces of the measurements: Chromium with a server, or the window. Both run the same functions in their page.
import fs from "node:fs";
import path from "node:path";
import { Desk, until } from "../browser/desk.mjs";
import { Desktop } from "../window/desktop.mjs";
import { Chromium } from "./chromium.mjs";
import { install } from "./probe.mjs";

const root = path.join(import.meta.dirname, "../..");

/** The data directory with the long conversation; build/test.sh makes it. */
export const long = {
  data: process.env.LONG_DATA ?? path.join(root, "build/bin/long/data"),
  facts: () => JSON.parse(fs.readFileSync(process.env.LONG_FACTS ?? path.join(root, "build/bin/long/facts.json"), "utf8")),
};

/** A copy of the long conversation for one run. */
function lay(desk) {
  fs.cpSync(long.data, path.join(desk.data, "deskhand"), { recursive: true, mode: fs.constants.COPYFILE_FICLONE });
}

export async function inChromium(t, { filled = false } = {}) {
  const desk = Desk.make(t);
  if (filled) lay(desk);
  await desk.start();
  const chromium = await Chromium.open(t, desk.link);
  const there = () => until("the page", () => chromium.run(() => document.readyState === "complete" && !window.probe && !!document.querySelector("#app h1, #app h2")));
  const surface = {
    name: "Chromium", desk, chromium,
    run: (body, argument) => chromium.run(body, argument),
    reload: async () => {
      await chromium.inPage("Page.reload");
      await there();
      await surface.run(install);
    },
  };
  await there();
  await surface.run(install);
  return surface;
}

export async function inWindow(t, { filled = false } = {}) {
  const d = await Desktop.open(t);
  if (filled) lay(d.desk);
  await d.drive();
  const surface = {
    name: "window", desk: d.desk, desktop: d,
    run: (body, arg) => d.js(`return (${body})(arguments[0])`, arg ?? null),
    reload: async () => {
      await d.js("location.reload()");
      await until("the page", () => d.js("return document.readyState === 'complete' && !window.probe && document.querySelector('#app')?.childElementCount > 0"));
      await surface.run(install);
    },
  };
  await surface.run(install);
  return surface;
}

/** Waits for a time that probe.time leaves. */
export function timed(surface, name, ms) {
  return until(name, () => surface.run((mark) => window.probe.marks[mark], name), ms);
}

/** Waits until a scroll of the probe has ended. */
export function scrolled(surface, ms = 120_000) {
  return until("the end of the scroll", () => surface.run(() => window.probe.done), ms);
}
