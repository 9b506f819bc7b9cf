// A server of the site and a Chromium, for the tests of the explorer. The site is the first argument of the program.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

import { chromium } from "playwright-core";

const site = process.argv[2];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".json": "application/json" };

// Below these folders the same pages have another library. That of `trap` traps when it is asked about the code `trap`,
// and ever after; that of `slow` takes a second for each plan, that of `wide` for each description.
const OTHERS = {
  trap: (script) => `let dead = false;\n${script}`.replace(
    /^function ask\(request.*$/m,
    '$&\n  dead ||= request.code === "trap";\n  if (dead) throw new WebAssembly.RuntimeError("unreachable executed");',
  ),
  wide: (script) => script.replace(/^function ask\(request.*$/m, '$&\n  for (const end = Date.now() + 1000; request.do === "code" && Date.now() < end; );'),
  slow: (script) => script.replace(/^function ask\(request.*$/m, '$&\n  for (const end = Date.now() + 1000; request.do === "plan" && Date.now() < end; );'),
};

const server = createServer(async ({ url }, response) => {
  const place = normalize(new URL(url, "http://site").pathname);
  const [, other] = place.split("/");
  const alter = OTHERS[other];
  const path = join(site, alter ? place.slice(other.length + 1) : place);
  try {
    let bytes = await readFile(path);
    if (alter && path.endsWith("paritas.js")) bytes = alter(bytes.toString());
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const base = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** What went wrong in any page: errors, and requests to other servers. */
export const faults = [];

/** Opens a page of the site, below a width of 500 pixels on a screen that is touched. */
export async function open(path, width = 1440, colorScheme = "light") {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, hasTouch: width < 500 });
  page.on("pageerror", (error) => faults.push(`${path}: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && faults.push(`${path}: ${message.text()}`));
  page.on("request", (request) => /^(data|blob):/.test(request.url()) || request.url().startsWith(base) || faults.push(`${path} asks ${request.url()}`));
  await page.goto(base + path);
  return page;
}

/** Waits until the page shows the answer for a code and a loss, or an error about the code. */
export const shown = (page, code, lost) => page.waitForFunction((wanted) => document.body.dataset.shown === wanted, `${code} ${lost.join(",")}`, { timeout: 60_000 }).catch(async (error) => {
  const [seen, refused] = [await page.evaluate(() => document.body.dataset.shown), await page.locator("#code-error").innerText()];
  throw new Error(`${code} without ${lost} is not shown, but ${seen}; ${refused}`, { cause: error });
});

/** Ends the browser and the server. */
export async function close() {
  await browser.close();
  server.close();
}
