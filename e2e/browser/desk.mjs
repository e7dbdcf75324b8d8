// A private Deskhand for a test, seen through its app: a Place, and one Chromium for all tests of a process.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { patience, Place, program, testAgents, until } from "../place.mjs";

export { program, testAgents, until };

/** Where screenshots go; git ignores it. */
export const artefacts = process.env.E2E_ARTEFACTS ?? path.join(import.meta.dirname, "artefacts");

/** Waits until the page has painted its present state, and takes a screenshot for people to look at when E2E_ARTEFACTS names a directory. */
export async function shoot(page, name) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  if (process.env.E2E_ARTEFACTS) await page.screenshot({ path: path.join(artefacts, `${name}.png`) });
}

const chromiumPaths = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** The same engine without what draws windows: a quarter less to compute for a test. */
const headless = "/usr/bin/chromium-headless-shell";

/** Where Chromium is; whole = with its windows. */
export function chromiumPath({ whole = false } = {}) {
  const found = [process.env.CHROMIUM, ...(whole ? [] : [headless]), ...chromiumPaths].find((file) => file && fs.existsSync(file));
  assert.ok(found, "Chromium is not installed (apt-get install chromium), or set CHROMIUM to its path");
  return found;
}

/** Without a screen, and without any network of its own. */
export const chromiumFlags = [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

let browser;
/** The one Chromium of a process, started again after a crash. */
async function chrome() {
  if (!(await browser)?.isConnected()) browser = chromium.launch({ executablePath: chromiumPath(), args: chromiumFlags });
  return browser;
}

after(async () => {
  await (await browser)?.close();
});

export class Desk extends Place {
  /** errors that pages reported: none is expected */ complaints = [];
  contexts = [];

  /** Opens the app: with the link of the start, or where told. */
  async page(url = this.link, options = {}) {
    const context = await (await chrome()).newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(patience);
    this.contexts.push(context);
    const page = await context.newPage();
    const home = new URL("/", url).href;
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // The browser's messages about unsuccessful answers: the tests check the answers themselves.
      if (message.type() === "error" && !/^Failed to load resource/.test(message.text())) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      const own = [this.url, home].some((one) => request.url().startsWith(one)); // a page may outlive its server, and ask for it
      if (!own && !/^(data|blob):/.test(request.url())) this.complaints.push(`asked ${request.url()}`);
    });
    await page.goto(url);
    return page;
  }

  /** One call of the client API over the private socket, as the command line does it; gives the body, fails on a problem. */
  async api(method, route, body) {
    const { status, data } = await this.call(method, route, body);
    assert.ok(status >= 200 && status < 300, `${method} ${route}: ${status} ${JSON.stringify(data)}`);
    return data;
  }

  call(method, route, body) {
    const { socket: socketPath } = JSON.parse(fs.readFileSync(path.join(this.data, "deskhand", "owner.json"), "utf8"));
    const content = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((done, fail) => {
      const request = http.request({
        socketPath, method, path: route, timeout: patience, agent: false,
        headers: content === undefined ? {} : { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(content) },
      }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          const text = Buffer.concat(parts).toString();
          const json = /json/.test(response.headers["content-type"] ?? "");
          done({ status: response.statusCode, data: json ? JSON.parse(text) : text });
        });
        response.on("error", fail);
      });
      request.on("error", fail);
      request.end(content);
    });
  }

  /** The session that was touched last. */
  async session() {
    return (await this.api("GET", "/client/sessions?limit=1")).items[0];
  }

  /** The whole transcript of a session. */
  async entries(id) {
    const all = [];
    for (let before = ""; ; ) {
      const page = await this.api("GET", `/client/sessions/${id}/entries?limit=200${before}`);
      all.unshift(...page.items);
      if (!page.next) return all;
      before = `&before=${page.next}`;
    }
  }

  async close(t) {
    for (const context of this.contexts) await context.close();
    await super.close(t);
  }

  async atEnd() {
    await super.atEnd();
    assert.deepEqual(this.complaints, [], "pages complained");
  }
}
