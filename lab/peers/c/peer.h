/* Shards in memory and the protocol with run.py, for all C peers.
 *
 * A peer is started with the arguments K M SHARD_BYTES OP ALIGN and perhaps DETAIL. OP is encode or decode, ALIGN is
 * staggered or page. The peer
 *
 *   1. makes shards, and prints "bytes N" if it needs shards of another length, N,
 *   2. encodes, checks that decoding gives the data back, and prints "parity H", a checksum of its parity, which run.py
 *      compares among codes that should have the same bytes,
 *   3. prints "ready".
 *
 * Where its library cannot serve the shape, or the processor lacks what DETAIL needs, it exits with 3 instead.
 *
 * From then on each line "sample N" makes it run the operation N times, and print the nanoseconds of all N together. If
 * N is greater than 1, an untimed run comes first, because other peers have used the caches since the last sample. */
#ifndef PEER_H
#define PEER_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, STAGGER = 320, MAX = 256 };

struct peer {
    int k, m;
    size_t bytes;
    int decode;
    /* How many data shards decoding restores, the first ones: m, if there are as many. */
    int lost;
    unsigned char *shards[MAX];
    /* The memory in which each shard lies. */
    char *memory[MAX];
};

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct peer peer_start(char **argv) {
    struct peer p = {.k = atoi(argv[1]), .m = atoi(argv[2]), .bytes = strtoull(argv[3], 0, 10),
                     .decode = !strcmp(argv[4], "decode")};
    if (p.k + p.m > MAX) exit(3);
    p.lost = p.m < p.k ? p.m : p.k;
    int page = !strcmp(argv[5], "page");
    for (int i = 0; i < p.k + p.m; i++) {
        char *memory = aligned_alloc(PAGE, (p.bytes + 2 * PAGE) / PAGE * PAGE + PAGE);
        p.memory[i] = memory;
        p.shards[i] = (unsigned char *)memory + (page ? 0 : i * STAGGER % PAGE);
        for (size_t j = 0; j < p.bytes; j++) p.shards[i][j] = (unsigned char)(j % 251 * 7 + i * 31);
    }
    return p;
}

/* Returns the FNV-1a hash of all parity. */
static uint64_t peer_parity(const struct peer *p) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = p->k; i < p->k + p->m; i++)
        for (size_t j = 0; j < p->bytes; j++) hash = (hash ^ p->shards[i][j]) * 0x100000001b3u;
    return hash;
}

/* Encodes, overwrites the first `lost` data shards, and checks that `decode` restores them. Exits with 1 if it does not. */
static void peer_check(struct peer *p, void (*encode)(void), void (*decode)(void)) {
    encode();
    unsigned char *copy[MAX];
    for (int i = 0; i < p->lost; i++) {
        copy[i] = malloc(p->bytes);
        memcpy(copy[i], p->shards[i], p->bytes);
        memset(p->shards[i], 0xEE, p->bytes);
    }
    decode();
    for (int i = 0; i < p->lost; i++) {
        if (memcmp(copy[i], p->shards[i], p->bytes)) {
            printf("wrong: shard %d did not come back\n", i);
            exit(1);
        }
        free(copy[i]);
    }
    printf("parity %016llx\nready\n", (unsigned long long)peer_parity(p));
    fflush(stdout);
}

static void peer_serve(void (*run)(void)) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        int n = atoi(line + strlen("sample "));
        if (n > 1) run();
        uint64_t start = now();
        for (int i = 0; i < n; i++) run();
        printf("%llu\n", (unsigned long long)(now() - start));
        fflush(stdout);
    }
}
#endif
