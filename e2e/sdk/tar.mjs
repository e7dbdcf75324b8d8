// Tar archives (POSIX ustar, with pax headers for names that ustar cannot say), so that the tests say each byte that they upload.

const block = 512;

function header({ name, type, size = 0, mode = 0o644, link = "" }) {
  const bytes = Buffer.alloc(block);
  const octal = (value, at, length) => bytes.write(value.toString(8).padStart(length - 1, "0"), at);
  bytes.write(name, 0, 100);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(1_700_000_000, 136, 12);
  bytes.fill(" ", 148, 156); // the checksum counts itself as spaces
  bytes.write(type, 156);
  bytes.write(link, 157, 100);
  bytes.write("ustar\x0000", 257);
  octal(bytes.reduce((sum, byte) => sum + byte, 0), 148, 7);
  bytes[154] = 0;
  return bytes;
}

function padded(data) {
  return [data, Buffer.alloc((block - (data.length % block)) % block)];
}

/** A record of a pax header, which says its own length. */
function record(key, value) {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (`${length}`.length + Buffer.byteLength(rest) !== length) length = `${length}`.length + Buffer.byteLength(rest);
  return Buffer.from(length + rest);
}

/**
 * An archive of these entries in their order: {name, data} is a file, a name that ends with / a directory, {name, link} a symbolic
 * link, {name, hardLink} a hard one.
 */
export function tar(entries) {
  const parts = [];
  for (const { name, data, mode, link, hardLink } of entries) {
    if (Buffer.byteLength(name) > 100 || /[^\x20-\x7e]/.test(name)) {
      const pax = record("path", name);
      parts.push(header({ name: "pax", type: "x", size: pax.length }), ...padded(pax));
    }
    const content = Buffer.from(data ?? "");
    const type = link ? "2" : hardLink ? "1" : name.endsWith("/") ? "5" : "0";
    const short = Buffer.from(name).subarray(0, 99).toString("latin1").replaceAll(/[^\x20-\x7e]/g, "_");
    parts.push(header({ name: short, type, size: content.length, mode, link: link ?? hardLink }), ...padded(content));
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * block)]);
}
