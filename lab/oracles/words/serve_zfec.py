"""Serves zfec, with the protocol of c/serve.h."""

import sys

import zfec

source, target = sys.stdin.buffer, sys.stdout.buffer

while line := source.readline().decode().split():
    verb, _, k, m, _, length = line[0], line[1], *map(int, line[2:6])
    given = [source.read(length) for _ in range(k if verb == "encode" else k + m)]
    encoder = zfec.Encoder(k, k + m)
    if verb == "encode":
        made = encoder.encode(given, list(range(k, k + m)))
    else:
        lost = {int(number) for number in line[6].split(",")}
        left = [number for number in range(k + m) if number not in lost][:k]
        # The decoder needs every data block that is there at the position of its number.
        order = [number if number in left else None for number in range(k)]
        others = (number for number in left if number >= k)
        order = [next(others) if number is None else number for number in order]
        data = zfec.Decoder(k, k + m).decode([given[number] for number in order], order)
        made = encoder.encode(data, list(range(k + m)))
    target.write(b"".join(bytes(block) for block in made))
    target.flush()
