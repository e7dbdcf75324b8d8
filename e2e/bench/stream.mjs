// Measures the frames while an agent streams 1,000 chunks a second. STREAM_SECONDS and BENCH_ROUNDS say how long and how often.
import { test } from "node:test";
import { until } from "../browser/desk.mjs";
import { summary } from "./probe.mjs";
import { add, processor, stolenSince } from "./report.mjs";
import { inChromium, inWindow } from "./surface.mjs";

const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const seconds = Number(process.env.STREAM_SECONDS ?? 60);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const wanted = new RegExp(process.env.BENCH_SURFACES ?? ".");

for (const open of [inChromium, inWindow]) {
  test(`a stream, ${open.name}`, { skip: !wanted.test(open.name) }, async (t) => {
    const surface = await open(t);
    await pause(3_000); // nobody has typed a prompt before; the page prepares the composer after the first screen
    const key = (name) => `${surface.name}.${name}`;
    for (let round = 0; round < rounds; round++) {
      const { id } = await surface.desk.api("POST", "/client/sessions", { agent: "mock", cwd: surface.desk.work, title: `Stream ${round}` });
      await until("the session", () => surface.run((name) => {
        const row = [...document.querySelectorAll("[role=treeitem]")].find((one) => one.textContent.includes(name));
        row?.click();
        return !!row;
      }, `Stream ${round}`));
      await until("the agent", async () => (await surface.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
      await surface.desk.api("POST", `/client/sessions/${id}/prompt`, { message: `stream 1000/s ${seconds}s` });
      await until("text", () => surface.run(() => !!document.querySelector("[role=log] [data-row=agent]")));
      const start = processor();
      await surface.run(() => window.probe.record());
      await until("the end of the turn", () => surface.run(() => !!document.querySelector("[role=log] [data-row=footer]")), (seconds + 60) * 1000);
      const { gaps, most } = await surface.run(() => window.probe.stop());
      const found = summary(gaps);
      console.log(surface.name, JSON.stringify({ ...found, most, stolen: stolenSince(start), worst10: [...gaps].sort((a, b) => b - a).slice(0, 10).map(Math.round) }));
      for (const name of ["worst", "p99", "median", "over", "frames"]) add(key(`stream_${name}`), found[name]);
      add(key("stream_elements"), most);
    }
  });
}
