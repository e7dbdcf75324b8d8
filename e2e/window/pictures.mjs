// Takes the pictures of the README and the manual from the real window, with the demo agent. Run by make pictures.
import fs from "node:fs";
import path from "node:path";
import { onDesktop, until } from "./desktop.mjs";

const images = path.join(import.meta.dirname, "../../docs/images");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

for (const look of ["light", "dark"]) {
  onDesktop(`pictures in ${look}`, async (d) => {
    if (look === "dark") d.env.GTK_THEME = "Adwaita:dark";
    const project = path.join(d.desk.home, "lighthouse");
    fs.mkdirSync(project);
    await d.drive();
    const take = async (name) => {
      await d.xdotool("mousemove", 1390, 890); // away from what would light up
      await pause(400); // the page's motion is over after 120 ms
      await d.portrait(path.join(images, `${name}-${look}.png`));
    };
    const send = async (text) => {
      await d.type("//textarea", text);
      await d.click("//button[normalize-space() = 'Send' or @aria-label = 'Send']");
    };
    const done = () => d.find("//button[normalize-space() = 'Send' or @aria-label = 'Send']");

    await d.shows("Demo agent");
    await d.type("//input[@type = 'text' or not(@type)]", "~/lighthouse");
    await take("first-run");
    await d.click("//button[@type = 'submit']");
    await send("Please bring the notes up to date.");
    await d.find("//button[contains(., 'Allow once')]");
    await pause(600);
    await take("approval");
    await d.click("//button[contains(., 'Allow once')]");
    await done();
    await take("conversation");
    await send("questions");
    await until("the questions", async () => (await d.desk.api("GET", "/client/inbox")).items.length > 0);
    await pause(600);
    await take("question");

    // The same beside the window, while that is put away.
    const [{ session, id }] = (await d.desk.api("GET", "/client/inbox")).items;
    await d.desk.api("POST", `/client/requests/${id}/answer`, { reject: true });
    const app = await d.window();
    await d.xdotool("windowminimize", app);
    await until("the window is put away", async () => !(await d.place(app)).shown);
    const beside = async (prompt, title, name) => {
      await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${session}`)).turn);
      await d.desk.api("POST", `/client/sessions/${session}/prompt`, { message: prompt });
      const window = await d.dialog(title);
      await pause(900);
      await d.portrait(path.join(images, `${name}-${look}.png`), window);
      await d.key("Escape");
      for (const one of (await d.desk.api("GET", "/client/inbox")).items)
        await d.desk.api("POST", `/client/requests/${one.id}/answer`, one.kind === "question" ? { reject: true } : { optionId: "reject-once" });
    };
    await beside("permission", "^Demo agent wants to edit$", "native-approval");
    await beside("question", "^Demo agent asks$", "native-question");
  });
}
