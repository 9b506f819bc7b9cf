/* A storage daemon's write path: a client's write arrives in 4 KiB stripe units, parity goes to other
 * nodes, one node dies, and a degraded read computes what was on it.
 *
 *     cc stripe.c $(pkg-config --cflags --libs paritas) -o stripe && ./stripe
 *
 * The plugin of an object store (Ceph, Swift) keeps the codec for the life of a pool, and so does a
 * sender of QUIC datagrams for that of a connection. All calls below may come from any thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <paritas.h>

enum { K = 8, M = 3, UNIT = 4096 };

static void expect(paritas_status status) {
    if (status == PARITAS_OK) return;
    fprintf(stderr, "paritas: %s\n", paritas_last_message());
    exit(status);
}

int main(void) {
    /* The bytes of ISA-L's Cauchy matrix: what other nodes of the cluster may have written already. */
    paritas_codec *codec;
    expect(paritas_codec_new("isal-cauchy:k=8,m=3", NULL, &codec));

    /* One question, prepared once: runs without a lock and without an allocation. */
    paritas_prepared *encode;
    expect(paritas_prepare_encode(codec, &encode));

    static uint8_t unit[K + M][UNIT];
    uint8_t *shards[K + M];
    for (int i = 0; i < K + M; i++) shards[i] = unit[i];
    for (int i = 0; i < K; i++) memset(unit[i], 'a' + i, UNIT);
    expect(paritas_run(encode, (const uint8_t *const *)shards, shards + K, UNIT));

    /* A client overwrites unit 5. The nodes with parity are sent the difference alone. */
    paritas_prepared *change;
    expect(paritas_prepare_difference(codec, 5, &change));
    static uint8_t difference[UNIT];
    for (int i = 0; i < UNIT; i++) difference[i] = unit[5][i] ^ 'X';
    memset(unit[5], 'X', UNIT);
    const uint8_t *changes[] = {difference};
    expect(paritas_run(change, changes, shards + K, UNIT));

    /* The nodes of units 2, 5 and 9 die; a read needs units 2 and 5. */
    static uint8_t again[2][UNIT];
    paritas_prepared *degraded;
    size_t present[] = {0, 1, 3, 4, 6, 7, 8, 10}, lost[] = {2, 5};
    expect(paritas_prepare_reconstruct(codec, present, K, lost, 2, &degraded));
    const uint8_t *have[K];
    for (int i = 0; i < K; i++) have[i] = unit[present[i]];
    uint8_t *want[] = {again[0], again[1]};
    expect(paritas_run(degraded, have, want, UNIT));
    if (memcmp(again[0], unit[2], UNIT) != 0 || memcmp(again[1], unit[5], UNIT) != 0) return 1;
    printf("units 2 and 5 came back: %c, %c\n", again[0][0], again[1][0]);

    paritas_prepared_free(degraded);
    paritas_prepared_free(change);
    paritas_prepared_free(encode);
    paritas_codec_free(codec);
    return 0;
}
