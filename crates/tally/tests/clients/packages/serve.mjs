// One origin for a page and a server, as a game in a browser needs it: files of a folder below /page/, and all else is the server's.
//
// Arguments: the folder, and the host and the port of the server. It prints its own address, and ends with its standard input.

import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import path from "node:path";

const [folder, host, port] = process.argv.slice(2);
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript" };

async function file(name, answer) {
  const text = await readFile(path.join(folder, name)).catch(() => undefined);
  answer.writeHead(text === undefined ? 404 : 200, { "content-type": types[path.extname(name)] ?? "text/plain" });
  answer.end(text);
}

const pages = createServer((asked, answer) => {
  const name = /^\/page\/([\w./-]+)/.exec(asked.url)?.[1];
  if (name !== undefined) return void file(name, answer);
  const { method, url, headers } = asked;
  const passed = request({ host, port, method, path: url, headers, agent: false }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  // A stream that the page leaves ends at the server, too.
  answer.on("close", () => passed.destroy());
  asked.pipe(passed);
});
pages.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${pages.address().port}`));
process.stdin.resume().on("end", () => process.exit());
