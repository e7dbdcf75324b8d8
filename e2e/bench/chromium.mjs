// A Chromium without a listener for answers: measurements of hours must not measure their own driver. Playwright makes the browser keep the
// bodies of all answers to a page, up to a hundred megabytes, and a page that asks for events all day grows by their bodies. So this
// Chromium is driven over the pipe of the DevTools protocol, with only the requested domains switched on.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromiumFlags, chromiumPath } from "../browser/desk.mjs";

export class Chromium {
  #waiting = new Map();
  #last = 0;
  #rest = "";

  /** Starts it, with a profile of its own; it ends with the test. */
  static async open(t, url) {
    const c = new this();
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), "chromium-"));
    const child = spawn(chromiumPath({ whole: true }), [...chromiumFlags, "--remote-debugging-pipe", `--user-data-dir=${profile}`, "--window-size=1280,800", "about:blank"], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    const ended = new Promise((done) => child.once("exit", done));
    t.after(async () => {
      await Promise.race([c.send("Browser.close").catch(() => {}), ended]);
      await Promise.race([ended, new Promise((done) => setTimeout(done, 5_000).unref())]);
      child.kill("SIGKILL");
      await ended;
      fs.rmSync(profile, { recursive: true, force: true });
    });
    c.#out = child.stdio[3];
    c.#out.on("error", () => {}); // the browser has ended, as the calls report
    child.stdio[4].on("data", (data) => c.#heard(data.toString()));
    ended.then(() => c.#waiting.forEach(({ fail }) => fail(new Error("Chromium has ended"))));
    const { targetInfos } = await c.send("Target.getTargets");
    const { targetId } = targetInfos.find(({ type }) => type === "page");
    c.session = (await c.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    await c.inPage("Page.navigate", { url });
    return c;
  }

  #out;

  #heard(text) {
    const parts = (this.#rest + text).split("\0");
    this.#rest = parts.pop();
    for (const part of parts) {
      const { id, result, error } = JSON.parse(part);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.fail(new Error(error.message));
      else waiting?.done(result);
    }
  }

  /** One command to the browser, or to a session of it. */
  send(method, params = {}, sessionId) {
    const id = ++this.#last;
    return new Promise((done, fail) => {
      this.#waiting.set(id, { done, fail });
      this.#out.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** One command to the page. */
  inPage(method, params) {
    return this.send(method, params, this.session);
  }

  /** Runs a function in the page and gives what it returns. */
  async run(body, argument = null) {
    const { result, exceptionDetails } = await this.inPage("Runtime.evaluate", {
      expression: `(${body})(${JSON.stringify(argument)})`, awaitPromise: true, returnByValue: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}
