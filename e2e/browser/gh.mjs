// A stand-in for the person's own gh, and parts of its answers.
import path from "node:path";

/** A gh that answers from state.json in its directory, has one pull request after it was asked to make one, and notes each call. */
export const gh = (directory) => `#!${process.execPath}
const fs = require("node:fs");
const args = process.argv.slice(2);
const file = ${JSON.stringify(path.join(directory, "state.json"))};
const state = JSON.parse(fs.readFileSync(file, "utf8"));
const body = args.includes("--input") ? JSON.parse(fs.readFileSync(0, "utf8")) : {};
fs.appendFileSync(${JSON.stringify(path.join(directory, "calls"))}, JSON.stringify({ args, body, cwd: process.cwd(), there: fs.readdirSync(".") }) + "\\n");
const answer = (status, value) => process.stdout.write("HTTP/2.0 " + status + " Text\\nContent-Type: application/json\\r\\n\\r\\n" + JSON.stringify(value));
if (args.at(-1) === "graphql") {
  answer(200, { data: { repository: { nameWithOwner: "acme/app", defaultBranchRef: { name: "main" }, parent: null, pullRequests: { nodes: state.requests } } } });
} else if (args.at(-1) === "repos/acme/app/pulls") {
  state.requests = [{ ...state.next, title: body.title, isDraft: body.draft }];
  fs.writeFileSync(file, JSON.stringify(state));
  answer(201, { number: 12, title: body.title, html_url: "https://github.com/acme/app/pull/12", draft: body.draft });
} else {
  answer(404, { message: "Not Found" });
  process.exit(1);
}
`;

export const nodes = (...list) => ({ nodes: list });
export const said = (login, body) => ({ id: body, url: `https://github.com/acme/app/pull/12#${login}`, body, createdAt: "2026-01-02T00:00:00Z", author: { login } });
export const run = (name, status, conclusion) => ({
  __typename: "CheckRun", name, status, conclusion, startedAt: "1", detailsUrl: `https://ci.example/${name}`,
  checkSuite: { workflowRun: { event: "push", workflow: { name: "CI" } } },
});
