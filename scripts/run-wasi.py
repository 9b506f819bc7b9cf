#!/usr/bin/env python3
"""Runs a WASI program: run-wasi.py PROGRAM.wasm ARGUMENT... The program sees the whole file system.

Cargo runs the core's tests with it (scripts/test-emulated wasm)."""

import os
import sys

from wasmtime import Config, Engine, ExitTrap, Linker, Module, Store, WasiConfig

config = Config()
config.cache = True
engine = Engine(config)
wasi = WasiConfig()
wasi.argv = sys.argv[1:]
wasi.env = list(os.environ.items())
wasi.preopen_dir("/", "/")
wasi.inherit_stdout()
wasi.inherit_stderr()
store = Store(engine)
store.set_wasi(wasi)
linker = Linker(engine)
linker.define_wasi()
try:
    instance = linker.instantiate(store, Module.from_file(engine, sys.argv[1]))
    instance.exports(store)["_start"](store)
except ExitTrap as end:
    sys.exit(end.code)
