/* What the C peers share: shards in memory, the calibration kernel, and the protocol with run.py.
 *
 * A peer is started with K M SHARD_BYTES OP ALIGN (OP encode or decode, ALIGN staggered or page). It makes
 * shards, checks that decoding what it encoded gives the data back, and prints "ready". Then each
 * line "sample N" makes it run the operation once untimed, because other peers have had the caches since its last
 * sample, and then N times between two runs of the calibration kernel, and print
 * three times in nanoseconds: calibration, operation (all N), calibration. */
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
    unsigned char *shards[MAX];
};

static volatile uint64_t sink;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A chain of multiplications that needs nothing but the core: some 40 microseconds. */
static uint64_t calibrate(void) {
    uint64_t start = now(), x = 88172645463325252u;
    for (int i = 0; i < 30000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
    return now() - start;
}

static struct peer peer_start(char **argv) {
    struct peer p = {.k = atoi(argv[1]), .m = atoi(argv[2]), .bytes = strtoull(argv[3], 0, 10),
                     .decode = !strcmp(argv[4], "decode")};
    int page = !strcmp(argv[5], "page");
    for (int i = 0; i < p.k + p.m; i++) {
        char *memory = aligned_alloc(PAGE, (p.bytes + 2 * PAGE) / PAGE * PAGE + PAGE);
        p.shards[i] = (unsigned char *)memory + (page ? 0 : i * STAGGER % PAGE);
        for (size_t j = 0; j < p.bytes; j++) p.shards[i][j] = (unsigned char)(j % 251 * 7 + i * 31);
    }
    return p;
}

/* After encoding and losing the first m data shards, `decode` must bring them back. */
static void peer_check(struct peer *p, void (*encode)(void), void (*decode)(void)) {
    encode();
    unsigned char *copy[MAX];
    int lost = p->m < p->k ? p->m : p->k;
    for (int i = 0; i < lost; i++) {
        copy[i] = malloc(p->bytes);
        memcpy(copy[i], p->shards[i], p->bytes);
        memset(p->shards[i], 0xEE, p->bytes);
    }
    decode();
    for (int i = 0; i < lost; i++) {
        if (memcmp(copy[i], p->shards[i], p->bytes)) {
            printf("wrong: shard %d did not come back\n", i);
            exit(1);
        }
        free(copy[i]);
    }
    printf("ready\n");
    fflush(stdout);
}

static void peer_serve(void (*run)(void)) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        int n = atoi(line + strlen("sample "));
        run();
        uint64_t before = calibrate(), start = now();
        for (int i = 0; i < n; i++) run();
        uint64_t operation = now() - start, after = calibrate();
        printf("%llu %llu %llu\n", (unsigned long long)before, (unsigned long long)operation,
               (unsigned long long)after);
        fflush(stdout);
    }
}
#endif
