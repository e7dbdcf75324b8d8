// Takes the pictures of the README and the manual from the real window, with the demo agent. Run by make pictures.
import fs from "node:fs";
import path from "node:path";
import { onDesktop, until } from "./desktop.mjs";

const here = import.meta.dirname;
const images = path.join(here, "../../docs/images");
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

  onDesktop(`pictures of attachments in ${look}`, async (d) => {
    if (look === "dark") d.env.GTK_THEME = "Adwaita:dark";
    const project = path.join(d.desk.home, "lighthouse");
    fs.mkdirSync(path.join(project, "plans"), { recursive: true });
    const photo = path.join(here, "../../docs/images/conversation-light.png");
    const put = (file, data) => (fs.writeFileSync(file, data), file);
    const files = [
      put(path.join(d.desk.home, "screenshot.png"), fs.readFileSync(photo)), put(path.join(d.desk.home, "error log.txt"), "no light\n".repeat(400)),
      put(path.join(d.desk.home, "measurements.bin"), Buffer.alloc(300_000, 7)), path.join(project, "plans"),
    ];
    put(path.join(project, "lamp.png"), fs.readFileSync(path.join(here, "../../app/icon.png")));
    put(path.join(project, "report.pdf"), "%PDF-1.4\n%%EOF\n");
    put(path.join(project, "summary.md"), "# Summary\n");
    await d.drive();
    const { id } = await d.desk.api("POST", "/client/sessions", { agent: "mock", cwd: project, title: "Why is it dark" });
    await until("the agent", async () => (await d.desk.api("GET", `/client/sessions/${id}`)).phase === "ready");
    await d.click("//nav//*[contains(text(), 'Why is it dark')]");
    await d.find("//textarea");
    const take = async (name) => {
      await d.xdotool("mousemove", 1390, 890);
      await pause(600);
      await d.portrait(path.join(images, `${name}-${look}.png`));
    };
    const { x, y } = await d.place(await d.window());
    await d.drop(files[0], { x: x + 700, y: y + 300 }, async () => {
      await pause(300);
      await d.portrait(path.join(images, `attach-drop-${look}.png`));
    });
    await d.find("//ul[@aria-label = 'Attachments']/li[contains(., 'goes as a picture')]");
    const { items } = await d.desk.api("POST", "/client/attachments", { paths: files, session: id });
    await d.desk.api("PATCH", `/client/sessions/${id}`, { attachments: items.map((one) => one.id), draft: "What do these tell?" });
    await d.shows("A copy goes to .deskhand/attachments");
    await take("attach-chips");
    await d.desk.api("PATCH", `/client/sessions/${id}`, { attachments: [], draft: "" });
    await d.desk.api("POST", `/client/sessions/${id}/prompt`, { message: "attach lamp.png report.pdf summary.md", attachments: [{ id: items[1].id }] });
    await d.find("//article[contains(., 'summary.md')]//button[normalize-space() = 'Open']");
    await until("the end of the turn", async () => !(await d.desk.api("GET", `/client/sessions/${id}`)).turn);
    await until("the picture", () => d.js("return document.querySelector('article[aria-label] img')?.naturalWidth > 0"));
    await d.js("document.querySelector('article[aria-label^=File]').scrollIntoView({ block: 'center' })");
    await take("attach-given");
    await d.click("//button[@aria-label = 'What to do with this conversation']");
    await d.click("//*[@role = 'menuitem'][contains(., 'Files')]");
    await d.find("//dialog//li[contains(., 'lamp.png')]");
    await take("attach-files");
  });
}
