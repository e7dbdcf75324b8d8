// What docs/api.md says of the SDK works as it stands there.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { program } from "../place.mjs";
import { Runtime, token } from "./runtime.mjs";

const page = fs.readFileSync(path.join(import.meta.dirname, "..", "..", "docs", "api.md"), "utf8");
const examples = [...page.matchAll(/<!-- test: js -->\n```js\n(.*?)```\n/gs)].map(([, code]) => code);
const says = ["The edit is written. You allowed it once.\nend_turn\n", "{ status: 'ok' }\n"];

test("the page has the examples that are tried here", () => assert.equal(examples.length, says.length));

for (const [index, code] of examples.entries()) {
  test(`example ${index + 1} of docs/api.md`, async (t) => {
    const runtime = await Runtime.open(t, { env: { DESKHAND_DEMO_AGENT: "" } }); // the demo agent that people have
    fs.symlinkSync(path.join(import.meta.dirname, "node_modules"), path.join(runtime.home, "node_modules")); // as npm install leaves it
    fs.writeFileSync(path.join(runtime.home, "example.mjs"), code);
    const env = { ...runtime.env, URL: runtime.url, TOKEN: token, SANDBOX_AGENT_BIN: program() };
    const result = await runtime.command(["example.mjs"], { bin: process.execPath, env });
    const lines = (text) => text.split("\n").filter(Boolean).sort(); // an answer can come before the messages, by another connection
    assert.deepEqual({ ...result, out: lines(result.out) }, { code: 0, out: lines(says[index]), err: "" });
    assert.deepEqual(await runtime.instances(), []);
  });
}
