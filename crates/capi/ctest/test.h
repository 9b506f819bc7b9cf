/* What the C tests share: checks that say where and why, and data. */
#ifndef PARITAS_TEST_H
#define PARITAS_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <paritas.h>

/* Ends the test if `condition` is false. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (last message: %s)\n", __FILE__, __LINE__, #condition,      \
                    paritas_last_message());                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) CHECK((call) == PARITAS_OK)

/* Returns `count` shards of `bytes` bytes, all 0xEE, each in memory of its own, so that tools see
 * what is read or written outside. */
static inline uint8_t **shards_new(size_t count, size_t bytes) {
    uint8_t **shards = calloc(count + 1, sizeof *shards);
    CHECK(shards != NULL);
    for (size_t i = 0; i < count; i++) {
        shards[i] = malloc(bytes ? bytes : 1);
        CHECK(shards[i] != NULL);
        memset(shards[i], 0xEE, bytes);
    }
    return shards;
}

static inline void shards_free(uint8_t **shards, size_t count) {
    for (size_t i = 0; i < count; i++) free(shards[i]);
    free(shards);
}

/* Fills `bytes` bytes with a pattern of a long period. */
static inline void fill(uint8_t *at, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)((i + seed) * 2654435761u >> 13);
}

#endif
