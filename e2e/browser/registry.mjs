// An npm registry on loopback, as small as npm allows: what was published, its tarballs, and a way to let one hang half-way.
import { createHash } from "node:crypto";
import http from "node:http";
import { gzipSync } from "node:zlib";

export class Registry {
  /** name -> version -> {manifest, tarball, size} */ #packages = new Map();
  /** file of a tarball that is not served to its end -> the answers that hang */ #held = new Map();

  /** Starts it; it ends with the test. */
  static async open(t) {
    const registry = new Registry();
    registry.server = http.createServer((request, response) => registry.#answer(request, response));
    await new Promise((done) => registry.server.listen(0, "127.0.0.1", done));
    registry.url = `http://127.0.0.1:${registry.server.address().port}/`;
    t.after(() => new Promise((done) => {
      registry.server.close(done);
      registry.server.closeAllConnections();
    }));
    return registry;
  }

  /** Puts a version of a package in: its program `bin`, and ballast for something to download. */
  publish(name, version, bin, text, ballast = 0) {
    const manifest = { name, version, bin: { [bin]: "index.js" } };
    // What cannot be packed is as large as it says.
    let noise = "";
    for (let n = 0; noise.length < ballast; n++) noise += createHash("sha512").update(`${n}`).digest("base64");
    const files = { "package.json": JSON.stringify(manifest), "index.js": text, ...(ballast ? { "ballast.txt": noise } : {}) };
    const size = Object.values(files).reduce((sum, file) => sum + file.length, 0);
    const tarball = gzipSync(tar(files));
    const file = `${name}/-/${name.split("/").at(-1)}-${version}.tgz`;
    manifest.dist = {
      tarball: this.url + file, unpackedSize: size, integrity: `sha512-${createHash("sha512").update(tarball).digest("base64")}`,
    };
    const versions = this.#packages.get(name) ?? new Map();
    this.#packages.set(name, versions.set(version, { manifest, tarball, file }));
  }

  /** Serves only half of the tarballs of a package, until told to go on. */
  hold(name) {
    this.#held.set(name, []);
  }

  release(name) {
    for (const { response, rest } of this.#held.get(name)) response.end(rest);
    this.#held.delete(name);
  }

  #answer(request, response) {
    const path = decodeURIComponent(new URL(request.url, this.url).pathname).slice(1);
    const json = (value) => {
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify(value));
    };
    for (const [name, versions] of this.#packages) {
      if (path === name) {
        const all = Object.fromEntries([...versions].map(([version, { manifest }]) => [version, manifest]));
        return json({ name, versions: all, "dist-tags": { latest: [...versions.keys()].at(-1) } });
      }
      for (const [version, { manifest, tarball, file }] of versions) {
        if (path === `${name}/${version}`) return json(manifest);
        if (path !== file) continue;
        const held = this.#held.get(name);
        if (!held) return response.end(tarball);
        const half = tarball.length >> 1;
        response.write(tarball.subarray(0, half));
        return held.push({ response, rest: tarball.subarray(half) });
      }
    }
    response.writeHead(404, { "Content-Type": "application/json" }).end('{"error":"Not found"}');
  }
}

/** A ustar archive of small files, below package/ as npm wants them. */
function tar(files) {
  const blocks = [];
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text);
    const header = Buffer.alloc(512);
    const octal = (value, at, length) => header.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
    header.write(`package/${name}`, 0, "latin1");
    octal(0o755, 100, 8);
    octal(0, 108, 8);
    octal(0, 116, 8);
    octal(content.length, 124, 12);
    octal(0, 136, 12);
    header.write("        ", 148, "latin1"); // the checksum counts its own field as blanks
    header.write("0", 156, "latin1");
    header.write("ustar\0" + "00", 257, "latin1");
    header.write(`${header.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    blocks.push(header, content, Buffer.alloc((512 - (content.length % 512)) % 512));
  }
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}
