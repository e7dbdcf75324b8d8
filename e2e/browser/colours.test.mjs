// Coloured output of programs is shown in readable colours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Looks } from "./app.mjs";
import { Desk, until } from "./desk.mjs";

/** A program that prints in all the ways that there are, in pieces. */
const paints = `#!/usr/bin/python3
import sys, time
def out(text):
    sys.stdout.write(text)
    sys.stdout.flush()
E = "\\x1b["
out(E + "1mtests" + E + "m\\r\\n")
for n in range(30, 38): out(E + f"{n}mword {n}" + E + f"0m " + E + f"{n + 60}mbright {n}" + E + "0m " + E + f"{n + 10}m ground " + E + "0m\\n")
out(E + "38;5;208morange " + E + "38;2;120;40;200mpurple " + E + "38:2::0:140:90mgreen " + E + "48;5;25mon blue" + E + "0m\\n")
out(E + "2mdim" + E + "22m " + E + "3mitalic" + E + "23m " + E + "4munderlined" + E + "24m " + E + "7minverse" + E + "27m " + E + "9mstruck" + E + "29m\\n")
out("<b>no markup</b> & <img src=x onerror=alert(1)>\\n")
for n in range(0, 101, 20):
    out("\\r" + E + "2K" + E + "33m" + f"{n}%")
    time.sleep(0.02)
out(E)
time.sleep(0.05)
out("32m done" + E + "0m\\n")
`;

const agent = (program) => `#!/usr/bin/python3
import json, sys
def send(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def read():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
def ask(method, **params):
    send(id=method, method=method, params={"sessionId": "s", **params})
    while True:
        m = read()
        if m.get("id") == method and "method" not in m: return m["result"]
def update(**u): send(method="session/update", params={"sessionId": "s", "update": u})
while True:
    m = read()
    result = {}
    if m.get("method") == "initialize": result = {"protocolVersion": 1}
    elif m.get("method") == "session/new": result = {"sessionId": "s"}
    elif m.get("method") == "session/prompt":
        terminal = ask("terminal/create", command="${program}")["terminalId"]
        update(sessionUpdate="tool_call", toolCallId="t", title="Paint", kind="execute", status="in_progress",
               content=[{"type": "terminal", "terminalId": terminal}])
        ask("terminal/wait_for_exit", terminalId=terminal)
        update(sessionUpdate="tool_call_update", toolCallId="t", status="completed")
        ask("terminal/release", terminalId=terminal)
        result = {"stopReason": "end_turn"}
    if "id" in m: send(id=m["id"], result=result)
`;

test("a program's colours are shown, and can be read", async (t) => {
  const looks = new Looks();
  const desk = Desk.make(t);
  desk.agents([{ id: "painter", name: "Painter", command: desk.script("painter", agent(desk.script("paints", paints))) }]);
  await desk.start();
  const app = await App.open(desk, { agent: "Painter" });
  await app.turn("paint");
  await app.log.getByRole("button", { name: /Paint/ }).first().click();
  const output = app.log.locator("figure pre").last();
  await output.getByText("done").waitFor();
  await output.scrollIntoViewIfNeeded();
  await looks.at(app.page, "colours");

  const text = await output.innerText();
  assert.match(text, /^tests\nword 30 bright 30 {2}ground \n/);
  assert.match(text, /<b>no markup<\/b> & <img src=x onerror=alert\(1\)>\n100% done$/);
  assert.equal(await output.locator("img, b").count(), 0);
  assert.doesNotMatch(text, /[\u001b\r]|20%/);
  const style = (words, property) => output.getByText(words, { exact: true }).last()
    .evaluate((span, name) => getComputedStyle(span).getPropertyValue(name), property);
  assert.equal(await style("word 31", "color"), "rgb(180, 53, 36)");
  assert.equal(await style("done", "color"), "rgb(28, 112, 72)");
  assert.equal(await style("on blue", "background-color"), "rgb(0, 95, 175)");
  assert.equal(await style("tests", "font-weight"), "700");
  assert.equal(await style("underlined", "text-decoration-line"), "underline");
  await app.page.emulateMedia({ colorScheme: "dark" });
  await until("dark", async () => (await style("word 31", "color")) === "rgb(238, 124, 107)");
  looks.done();
});
