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
      await d.click("//button[@aria-label = 'Send']");
    };
    const done = () => d.find("//button[@aria-label = 'Send']");

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
  });
}
