#!/usr/bin/env node
// Runs a WASI program with Node: run-wasi.mjs PROGRAM.wasm ARGUMENT... The program sees the whole
// file system. Cargo runs the core's tests with it (scripts/test-emulated wasm).
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program, ...args] = process.argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args: [program, ...args],
  env: process.env,
  preopens: { "/": "/" },
});
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exitCode = wasi.start(instance);
