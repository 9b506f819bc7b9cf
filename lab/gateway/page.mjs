// Looks at the gateway's page in Chromium: page.mjs ENDPOINT SHOTS NAME EXPECTED. It must say what is expected, fit
// widths from phone to desktop, light and dark, also without JavaScript, and pass axe.
import { mkdir } from "node:fs/promises";

import axe from "axe-core";
import { chromium } from "playwright-core";

const [endpoint, shots, name, expected] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const faults = [];
await mkdir(shots, { recursive: true });
let views = 0;
for (const width of [360, 800, 1440]) {
  for (const colorScheme of ["light", "dark"]) {
    for (const javaScriptEnabled of [true, false]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, javaScriptEnabled, bypassCSP: true });
      const page = await context.newPage();
      const view = `${name} ${width} ${colorScheme}${javaScriptEnabled ? "" : " without JavaScript"}`;
      page.on("pageerror", (error) => faults.push(`${view}: ${error.message}`));
      page.on("console", (message) => message.type() === "error" && faults.push(`${view}: ${message.text()}`));
      await page.goto(`${endpoint}/-/`);
      const text = await page.locator("main").innerText();
      if (!text.includes(expected)) faults.push(`${view}: not "${expected}" in ${text}`);
      if (javaScriptEnabled) {
        const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (over > 0) faults.push(`${view}: hangs over by ${over} pixels`);
        await page.evaluate(axe.source);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        for (const { id, nodes } of violations) faults.push(`${view}: axe: ${id}: ${nodes[0].html}`);
        await page.screenshot({ path: `${shots}/${name}-${width}-${colorScheme}.png` });
      }
      await context.close();
      views += 1;
    }
  }
}
await browser.close();
faults.forEach((fault) => console.log(fault));
console.log(`${views} views of the page, ${faults.length} findings; pictures are in ${shots}`);
process.exit(faults.length > 0 ? 1 : 0);
