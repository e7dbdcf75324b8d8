// Takes the pictures: of a screen in every size and colour for people to look at, and those of the manual, the same whenever they are
// taken. What differs from one run to the next (times, figures, the directory of the test) is written over before the shutter.
//
//   DESKHAND_PICTURES=manual   writes the manual's, into docs/images
//   DESKHAND_PICTURES=all      those, and every scene in three sizes, light and dark, into artefacts/pictures
//   otherwise                  looks at each scene and writes nothing
//
// Pixels differ from one machine to the next with its fonts, so what is compared, every time, is what the manual's pictures say: their
// screens as a screen reader would read them, in scenes/.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { artefacts, until } from "./desk.mjs";
import { indexed } from "./picture.mjs";

/** Where the manual's pictures are. */
export const images = path.join(import.meta.dirname, "../../docs/images");

/** Where what they say is kept, a file for each. */
export const scenes = path.join(import.meta.dirname, "scenes");

/** What passes and is no text of the page: names of controls, and how long something took, which is told where it was long. */
const passing = [[/\b\d{1,2}:\d\d\s(AM|PM)\b/g, "9:41 AM"], [/\b\d+ms\b/g, "1ms"], [/^ *- text: ·[\d.]+ s\n/gm, ""], [/ ·[\d.]+ s\b/g, ""],
  // Screen readers get a terminal's rows up to a second after they are drawn.
  [/( +- group "Terminal \d+ of [^\n]*:\n) +- list:\n(?: +- listitem[^\n]*\n)*(?: +- text: [^\n]*\n)?/g, "$1"]];

/** What is asked for. */
export const wanted = process.env.DESKHAND_PICTURES ?? "";

const every = [[1440, 900], [1024, 700], [720, 480]];
const sheet = path.join(artefacts, "pictures");

/** Runs in the page: when everything stands where it stays, what passes is written over. Not what somebody has said. */
async function settle([home, dir]) {
  await document.fonts.ready;
  await Promise.all(document.getAnimations().map((one) => one.finished.catch(() => {})));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const always = [
    [new RegExp(`${dir}/config(?![\\w.-])`, "g"), "~/.config"], [new RegExp(`${dir}/data(?![\\w.-])`, "g"), "~/.local/share"],
    [new RegExp(`${dir}/state(?![\\w.-])`, "g"), "~/.local/state"],
    [new RegExp(`${home}(?![\\w.-])`, "g"), "/home/you"], [new RegExp(`${dir}(?![\\w.-])`, "g"), "/home/you"],
    [/\b127\.0\.0\.1:\d{4,5}\b/g, "127.0.0.1:2468"], [/\bAPI :\d{4,5}\b/g, "API :2468"],
    [/\b\d{1,2}:\d\d\s(AM|PM)\b/g, "9:41 AM"], [/\b\d\d:\d\d:\d\d\.\d{3}\b/g, "09:41:07.250"], [/\b[0-2]\d:[0-5]\d\b(?!:)/g, "00:07"],
    [/\b20\d\d-\d\d-\d\d\b/g, "2026-01-05"], [/\bpid \d+/g, "pid 4711"],
    [/\b\d+(?:\.\d+)? ms\b/g, "12 ms"], [/^(\s*(?:Last saved: |.* · ))?(?:now|\d+ m|\d+ min)(\s*)$/, "$1now$2"],
    [/\b(agents|take|use) \d+(?:\.\d+)? [MG]B\b/g, "$1 212 MB"],
  ];
  const seconds = [[/\b\d+(?:\.\d+)? s\b/g, "1.2 s"]];
  // A size may be close to the next unit. Limits are the same every time, and so is the agents' memory: the masks above replaced its figures.
  const figures = [...seconds, [/(?<!above |goal is |agents |take |use |[\d.,])\b\d+(?:\.\d+)? [KMG]B\b/g, "86 KB"]];
  // A tool shows its duration when it was long; a busy machine must not change the picture.
  const alone = /^\s*\d+(?:\.\d+)? s\s*$/, lasting = [[alone, ""]], taking = [[alone, "12 ms"]]; // durations below a second are in ms
  const put = (root, words, but) => {
    const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (node.parentElement.closest(but)) continue;
      const now = words.reduce((text, [from, to]) => text.replace(from, to), node.data);
      if (now !== node.data) node.data = now;
    }
  };
  const over = () => {
    put(document.body, always, ".markdown, script, style");
    for (const field of document.querySelectorAll("input")) if (field.value.includes(home)) field.value = field.value.replaceAll(home, "~");
    for (const place of document.querySelectorAll("footer, aside, [data-part=data], [data-part=about]")) put(place, figures, ".markdown, pre");
    for (const place of document.querySelectorAll("[data-row=footer], dialog")) put(place, seconds, ".markdown, pre");
    for (const row of document.querySelectorAll("[data-row=tool], [data-row=work]")) put(row, lasting, ".markdown, pre");
    for (const place of document.querySelectorAll(".number.ms, [aria-label^='Test of '] .numbers")) put(place, taking, ".markdown");
  };
  over();
  // Texts that are updated before the shutter are masked before they are painted.
  window.passing ??= new MutationObserver(over);
  window.passing.observe(document.body, { subtree: true, childList: true, characterData: true });
}

/** Runs in the page: what passes is seen again. */
function unsettle() {
  window.passing?.disconnect();
}

export class Camera {
  #taken = new Set();

  /** @param desk whose directory is hidden in the pictures */
  constructor(desk) {
    this.desk = desk;
  }

  /**
   * Looks at what is on the page.
   * @param {{manual?: boolean | import("playwright-core").Locator, around?: number}} [options] manual: it is one of the manual's, whole, or
   *   only this part of it with so many pixels around it; says: the part whose words are compared, where that is not all of the picture,
   *   false for none; before each shot: before the pointer has gone to its corner, and last
   */
  async take(page, name, { manual, around = 0, says = manual === true ? page.locator("body") : manual, before, last, sizes = every } = {}) {
    assert.ok(!this.#taken.has(name), `${name} was taken before`);
    this.#taken.add(name);
    const hidden = [this.desk.home, this.desk.dir];
    const view = page.viewportSize();
    if (!manual && wanted !== "all") return;
    for (const scheme of wanted ? ["light", "dark"] : ["light"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      if (wanted === "all") {
        for (const [width, height] of sizes) {
          await page.setViewportSize({ width, height });
          await before?.();
          await page.mouse.move(0, 0);
          await last?.();
          await page.evaluate(settle, hidden);
          await save(path.join(sheet, `${name}-${width}-${scheme}.png`), await page.screenshot());
        }
        await page.setViewportSize(view);
      }
      await before?.();
      await page.mouse.move(0, 0);
      await last?.();
      await page.evaluate(settle, hidden);
      if (!manual) continue;
      const clip = manual === true ? undefined : await box(page, manual, around);
      const shot = await page.screenshot({ clip });
      assert.ok(shot.length > 2_000, `${name} shows nothing`);
      if (wanted) await keepPicture(page, `${name}-${scheme}`, shot);
      if (says && scheme === "light") await this.#compare(page, name, says);
    }
    await page.evaluate(unsettle);
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  }

  /** Looks whether a screen still says what its picture does. */
  async #compare(page, name, part) {
    const file = path.join(scenes, `${name}.txt`);
    const read = async () => {
      await page.evaluate(settle, [this.desk.home, this.desk.dir]);
      const said = (await part.ariaSnapshot()).replaceAll(this.desk.home, "/home/you").replaceAll(this.desk.dir, "/home/you");
      return `${passing.reduce((text, [from, to]) => text.replace(from, to), said)}\n`;
    };
    if (wanted) return save(file, await read());
    const kept = fs.readFileSync(file, "utf8");
    let now;
    await until("the same screen", async () => (now = await read()) === kept).catch(() => {}); // an update may still be on its way
    assert.equal(now, kept, `${name} is not what its picture in docs/images shows: make pictures takes it again`);
  }
}

/** Writes one of the manual's pictures, with 256 of its colours: a third of what Chromium makes of it. */
export async function keepPicture(page, name, shot) {
  const painter = await page.context().newPage();
  const { width, height, palette, pixels } = await painter.evaluate(fewer, shot.toString("base64"));
  await painter.close();
  await save(path.join(images, `${name}.png`), indexed(width, height, Buffer.from(palette, "base64"), Buffer.from(pixels, "base64")));
}

/** Runs in a page: a picture's colours, 256 at most, and for each pixel the nearest of them. Screens have few; the rest are edges of letters. */
async function fewer(png) {
  const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const { width, height } = picture;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(picture, 0, 0);
  const all = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const colour of all) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const far = ([r, g, b], [x, y, z]) => 2 * (r - x) ** 2 + 4 * (g - y) ** 2 + 3 * (b - z) ** 2; // as the eye weighs them
  // The most frequent colours alone would be greys of letters: colours that resemble an earlier colour come last.
  const colours = [], palette = [];
  const frequent = [...counts].sort(([a, n], [b, m]) => m - n || a - b).map(([colour]) => colour);
  for (const apart of [2_000, 400, 100, 0]) {
    for (const colour of frequent) {
      if (palette.length === 256) break;
      if (colours.includes(colour) || palette.some((one) => far(one, parts(colour)) < apart)) continue;
      colours.push(colour);
      palette.push(parts(colour));
    }
  }
  const nearest = new Map(colours.map((colour, at) => [colour, at]));
  const find = (colour) => {
    let best = 0, least = Infinity;
    palette.forEach((one, at) => {
      const distance = far(one, parts(colour));
      if (distance < least) [best, least] = [at, distance];
    });
    nearest.set(colour, best);
    return best;
  };
  const pixels = Uint8Array.from(all, (colour) => nearest.get(colour) ?? find(colour));
  const text = (bytes) => {
    let made = "";
    for (let at = 0; at < bytes.length; at += 8192) made += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(made);
  };
  return { width, height, palette: text(Uint8Array.from(palette.flat())), pixels: text(pixels) };
}

async function box(page, part, around) {
  const { x, y, width, height } = await part.boundingBox();
  const view = page.viewportSize();
  const left = Math.max(0, Math.floor(x - around)), top = Math.max(0, Math.floor(y - around));
  return {
    x: left, y: top,
    width: Math.min(view.width, Math.ceil(x + width + around)) - left, height: Math.min(view.height, Math.ceil(y + height + around)) - top,
  };
}

async function save(file, bytes) {
  await fs.promises.mkdir(path.dirname(file), { recursive: true });
  await fs.promises.writeFile(file, bytes);
}
