// Starts Deskhand for a scene of the manual's pictures: with the lighthouse project, the scripted agent, and their conversations.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { App } from "./app.mjs";
import { Camera, wanted } from "./camera.mjs";
import { Desk, until } from "./desk.mjs";
import { scriptedAgent, writeProject } from "./scriptedagent.mjs";

export const viewport = { width: 1440, height: 900 };
const git = (cwd, ...args) => execFileSync("git", ["-C", cwd, "-c", "user.name=You", "-c", "user.email=you@example.org", ...args], { stdio: "ignore" });

/** Commits everything in a directory. */
export function commit(directory, subject) {
  git(directory, "add", ".");
  git(directory, "commit", "-q", "-m", subject);
}

/** Registers a scene as a test. A scene that is no picture of the manual runs only with DESKHAND_PICTURES=all. */
export const scene = (name, act, { manual = true } = {}) => test(`scene: ${name}`, { skip: !manual && wanted !== "all" }, act);
export const wide = { manual: false };

/** Starts Deskhand with the lighthouse project and the scripted agent, and opens its page. ready runs before the server starts. */
export async function openLighthouse(t, { agents = [], env = {}, ready = () => {}, ...options } = {}) {
  const desk = Desk.make(t, { env: { PS1: "lighthouse $ ", DESKHAND_KEYRING: "off", ...env } });
  desk.work = path.join(desk.home, "lighthouse");
  writeProject(desk.work);
  git(desk.work, "init", "-q", "-b", "main");
  commit(desk.work, "The lamp");
  desk.agents([scriptedAgent(desk), ...agents]);
  await ready(desk);
  await desk.start();
  const camera = new Camera(desk);
  const app = await App.open(desk, { viewport, ...options });
  app.panel = app.page.getByRole("complementary", { name: "Side panel" });
  return { desk, app, page: app.page, camera };
}

/** Creates a session through the API, sends message as its first prompt, and waits for the end of the turn unless done is false. */
export async function begin(desk, title, { agent = "keeper", cwd = desk.work, message, done = true } = {}) {
  const { id } = await desk.api("POST", "/client/sessions", { agent, cwd, title });
  if (!message) return id;
  // An agent sends its commands by itself, before or after a prompt that is there: a picture shows them before the prompt.
  await until(`what the agent of ${title} can do`, async () => (await desk.api("GET", `/client/sessions/${id}`)).commands.length > 0);
  await desk.api("POST", `/client/sessions/${id}/prompt`, { message });
  if (done) await until(`the turn of ${title}`, async () => !(await desk.api("GET", `/client/sessions/${id}`)).turn && (await desk.entries(id)).some((one) => one.kind === "agent"));
  return id;
}

export const waiting = (desk, count) => until(`${count} requests`, async () => (await desk.api("GET", "/client/inbox?limit=200")).items.length >= count);
/** Opens a conversation from the sidebar. The click is repeated when the row moved, because another conversation began meanwhile. */
export const show = async (app, title) => {
  const heading = app.page.getByRole("heading", { name: title, level: 1 }).first();
  await until(`the conversation ${title}`, async () => {
    await app.sidebar.getByRole("treeitem", { name: title }).first().click();
    return heading.waitFor({ timeout: 2_000 }).then(() => true, () => false);
  });
};

/** Creates the conversations of a sidebar in long use: finished, working and waiting conversations in two directories. */
export async function fleet(desk) {
  const horn = path.join(desk.home, "foghorn");
  fs.mkdirSync(horn, { recursive: true });
  fs.mkdirSync(path.join(horn, "notes"));
  fs.writeFileSync(path.join(horn, "README.md"), "# Foghorn\n");
  fs.writeFileSync(path.join(horn, "notes/keeper.md"), "# Notes\n\n- The lamp turns too fast in a storm.\n");
  await begin(desk, "Review of the tide table", { cwd: horn, message: "Review it, please" });
  await begin(desk, "Blow every minute in fog", { cwd: horn, message: "review" });
  const slow = await begin(desk, "Run the slow tests", { cwd: horn, message: "Do the slow tests, all of them", done: false });
  await until("the slow tests", async () => (await desk.entries(slow)).some((one) => one.tool?.title.startsWith("go test")));
  await begin(desk, "Bring the notes up to date", { cwd: horn, message: "edit the notes", done: false });
  await waiting(desk, 1);
  return begin(desk, "Slow in a storm", { message: "The lamp turns too fast in a storm. Find out why, and mend it." });
}
