// Takes the manual's pictures of what only the desktop shows: the dialogs beside the window. All others are taken from the app in
// Chromium, by e2e/browser/pictures.test.mjs. Run by make pictures.
import fs from "node:fs";
import path from "node:path";
import { onDesktop, pause, until } from "./desktop.mjs";

const here = import.meta.dirname;
const images = path.join(here, "../../docs/images");

for (const look of ["light", "dark"]) {
  onDesktop(`pictures in ${look}`, async (d) => {
    if (look === "dark") d.env.GTK_THEME = "Adwaita:dark";
    fs.mkdirSync(path.join(d.desk.home, "lighthouse"));
    await d.drive();
    await d.shows("Demo agent");
    const { id: session } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: path.join(d.desk.home, "lighthouse"), title: "Slow in a storm" });
    const app = await d.window();
    await d.xdotool("windowminimize", app);
    await until("the window is put away", async () => !(await d.place(app)).shown);
    const beside = async (prompt, title, name) => {
      await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${session}`)).turn);
      await d.desk.api("POST", `/client/sessions/${session}/prompt`, { message: prompt });
      const window = await d.dialog(title);
      await pause(900); // GTK's own motion
      await d.portrait(path.join(images, `${name}-${look}.png`), window);
      await d.key("Escape");
      for (const one of (await d.desk.api("GET", "/client/inbox")).items)
        await d.desk.api("POST", `/client/requests/${one.id}/answer`, one.kind === "question" ? { reject: true } : { optionId: "reject-once" });
    };
    await beside("permission", "^Demo agent wants to edit$", "native-approval");
    await beside("question", "^Demo agent asks$", "native-question");
  });
}
