"""A program whose types `scripts/test-python` checks, with numpy and without. It is not run."""

from collections.abc import Sequence
from typing import assert_type

import numpy
from numpy.typing import NDArray

import paritas


def encode(codec: paritas.Codec, data: list[bytes], parity: list[bytearray]) -> list[bytearray]:
    assert_type(codec.encode(parity, parity), list[bytearray])
    return codec.encode(data)


def reconstruct(codec: paritas.Codec, shards: Sequence[bytes | None], length: int) -> bytes:
    return codec.join(codec.reconstruct(shards), length)


def names(source: str, folder: str) -> list[str]:
    return [shard.name for shard in paritas.encode_file(source, folder)]


def decode(blocks: paritas.LtBlocks) -> bytes:
    decoder = paritas.LtDecoder(blocks.info)
    for number, block in enumerate(blocks):
        decoder.push(number, block)
    return decoder.reconstruct()


def store(path: str, name: str, content: memoryview) -> str:
    with open(path, "rb") as file:
        paritas.Volume.open("tank.toml").put(name, file)
    return paritas.Volume.open("tank.toml").put(name, content).digest


def arrays(codec: paritas.Codec, data: NDArray[numpy.uint8], parity: NDArray[numpy.uint8]) -> bytes:
    codec.encode(data, parity)
    codec.prepared().run(data, parity)
    codec.verify([*data, *parity])
    return codec.join(codec.split(codec.encode(data)), len(data))
