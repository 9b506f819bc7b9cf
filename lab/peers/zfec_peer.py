"""Measures zfec, with the protocol of c/peer.h. zfec returns memory of its own, so allocating it is part of what is
measured. It is called through its Python module, whose calls cost some microseconds. ALIGN has no effect, as Python decides
where shards lie. No checksum is printed: lab/oracles/words compares zfec's bytes with ours."""

import sys
import time

import zfec

# Bytes after which the pattern of a shard repeats.
PERIOD = 251


def filled(index: int, length: int) -> bytes:
    """Returns a shard as every peer fills it."""
    pattern = bytes((j * 7 + index * 31) & 0xFF for j in range(PERIOD))
    return (pattern * (length // PERIOD + 1))[:length]


def main() -> None:
    k, m, length, operation = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    data = [filled(index, length) for index in range(k)]
    try:
        encoder, decoder = zfec.Encoder(k, k + m), zfec.Decoder(k, k + m)
    except zfec.Error:
        sys.exit(3)
    parity_numbers = list(range(k, k + m))
    parity = encoder.encode(data, parity_numbers)
    lost = min(k, m)
    # Parity takes the places of the lost data.
    given = [*parity[:lost], *data[lost:]]
    numbers = [*parity_numbers[:lost], *range(lost, k)]
    if list(map(bytes, decoder.decode(given, numbers))) != data:
        print("wrong: shards did not come back")
        sys.exit(1)
    print("ready", flush=True)

    def run() -> None:
        if operation == "decode":
            decoder.decode(given, numbers)
        else:
            encoder.encode(data, parity_numbers)

    for line in sys.stdin:
        count = int(line.split()[1])
        if count > 1:
            run()
        start = time.perf_counter_ns()
        for _ in range(count):
            run()
        print(time.perf_counter_ns() - start, flush=True)


if __name__ == "__main__":
    main()
