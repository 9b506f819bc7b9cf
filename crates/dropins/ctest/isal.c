/* Compares a libisal.so.2 of ours with the real one, both given by path: every function that both have is called with
 * the same random arguments, and must leave the same bytes everywhere. With a third argument, measures both instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

typedef unsigned char u8;
typedef void encode_fn(int, int, int, u8 *, u8 **, u8 **);
typedef void update_fn(int, int, int, int, u8 *, u8 *, u8 **);
typedef void dot_fn(int, int, u8 *, u8 **, u8 *);
typedef void dots_fn(int, int, u8 *, u8 **, u8 **);
typedef void mad_fn(int, int, int, u8 *, u8 *, u8 *);
typedef void mads_fn(int, int, int, u8 *, u8 *, u8 **);
typedef int multiply_fn(int, u8 *, void *, void *);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The two libraries: ours is 0. */
static void *library[2];

static void *function(int which, const char *name) {
    void *found = dlsym(library[which], name);
    if (!found) fprintf(stderr, "library %d lacks %s\n", which, name);
    CHECK(found);
    return found;
}

static uint64_t state = 1;

static unsigned next(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void random_bytes(u8 *at, size_t count) {
    for (size_t i = 0; i < count; i++) at[i] = (u8)next(256);
}

enum { NODES = 48, LONGEST = 5056, ROOM = LONGEST + 64 };

static _Alignas(64) u8 data[NODES][ROOM], parity[2][NODES][ROOM];
static u8 matrix[2][NODES * NODES], tables[2][NODES * NODES * 32];
static u8 *sources[NODES], *targets[2][NODES];

/* Makes the table of a matrix for functions of one set: each library makes its own. Since version 2.31, the real one has
 * tables of 8 bytes in another form for its ec_encode_data and ec_encode_data_update if the processor has GFNI; all other
 * functions, and those named after a set, take tables of 32 bytes, which ec_init_tables_base makes. We make only these. */
static void make_tables(const char *set, int columns, int lines, u8 *coefficients, u8 *made[2]) {
    for (int which = 0; which < 2; which++) {
        const char *general = "ec_init_tables", *base = "ec_init_tables_base";
        void *init = function(which, *set && dlsym(library[which], base) ? base : general);
        ((void (*)(int, int, u8 *, u8 *))init)(columns, lines, coefficients, made[which]);
    }
}

/* A random call: its shape, tables of the same matrix, and targets of the same content. A matrix seldom changes from
 * one call to the next, as with callers. */
static int length, k, rows;

static void prepare(const char *set, int most_rows, int shortest) {
    length = shortest + (int)next(LONGEST - (unsigned)shortest);
    if (next(4) == 0) length = length / 64 * 64;
    if (most_rows < 7 || k == 0 || next(4) == 0) {
        k = 1 + (int)next(20);
        rows = most_rows < 7 ? most_rows : 1 + (int)next((unsigned)most_rows);
        random_bytes(matrix[0], (size_t)(k * rows));
        for (int i = 0; i < k * rows; i++) matrix[0][i] = next(5) ? matrix[0][i] : (u8)next(2);
    } else {
        matrix[0][next((unsigned)(k * rows))] ^= (u8)next(256);
    }
    make_tables(set, k, rows, matrix[0], (u8 *[]){tables[0], tables[1]});
    static u8 usual[NODES * NODES * 32];
    make_tables("_base", k, rows, matrix[0], (u8 *[]){usual, usual});
    CHECK(memcmp(tables[0], usual, (size_t)(k * rows * 32)) == 0);
    for (int i = 0; i < k; i++) {
        random_bytes(data[i], ROOM);
        sources[i] = data[i] + next(64);
    }
    for (int i = 0; i < rows; i++) {
        unsigned offset = next(64);
        random_bytes(parity[0][i], ROOM);
        memcpy(parity[1][i], parity[0][i], ROOM);
        for (int which = 0; which < 2; which++) targets[which][i] = parity[which][i] + offset;
    }
}

static void same(const char *name) {
    for (int i = 0; i < rows; i++) {
        if (memcmp(parity[0][i], parity[1][i], ROOM) == 0) continue;
        fprintf(stderr, "%s: k = %d, rows = %d, %d bytes: row %d differs\n", name, k, rows, length, i);
        exit(1);
    }
}

/* Instruction sets of the real library that this processor has. */
static const char *sets[] = {"", "_base", "_sse", "_avx", "_avx2", "_avx512"};

static int has(const char *set) {
    if (!*set || !strcmp(set, "_base")) return 1;
    if (!strcmp(set, "_avx512")) return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    if (!strcmp(set, "_avx2")) return __builtin_cpu_supports("avx2");
    return !strcmp(set, "_avx") ? __builtin_cpu_supports("avx") : __builtin_cpu_supports("ssse3");
}

static char name[64];

static void call_all(const char *set) {
    int vector = *set && strcmp(set, "_base");
    for (int round = 0; round < 40; round++) {
        prepare(set, 12, 1);
        snprintf(name, sizeof name, "ec_encode_data%s", set);
        /* Some tables are used so often that they are compiled. */
        for (int call = round % 3 ? 1 : 40; call--;) {
            for (int which = 0; which < 2; which++)
                ((encode_fn *)function(which, name))(length, k, rows, tables[which], sources, targets[which]);
            same(name);
        }
        snprintf(name, sizeof name, "ec_encode_data_update%s", set);
        int column = (int)next((unsigned)k);
        for (int which = 0; which < 2; which++)
            ((update_fn *)function(which, name))(length, k, rows, column, tables[which], sources[0], targets[which]);
        same(name);

        prepare("_base", 1, vector ? 64 : 32);
        column = (int)next((unsigned)k);
        snprintf(name, sizeof name, "gf_vect_dot_prod%s", set);
        for (int which = 0; which < 2; which++)
            ((dot_fn *)function(which, name))(length, k, tables[which], sources, targets[which][0]);
        same(name);
        snprintf(name, sizeof name, "gf_vect_mad%s", set);
        for (int which = 0; which < 2; which++)
            ((mad_fn *)function(which, name))(length, k, column, tables[which], sources[0], targets[which][0]);
        same(name);
        for (int count = 2; vector && count <= 6; count++) {
            prepare("_base", count, 64);
            column = (int)next((unsigned)k);
            snprintf(name, sizeof name, "gf_%dvect_dot_prod%s", count, set);
            for (int which = 0; which < 2; which++)
                ((dots_fn *)function(which, name))(length, k, tables[which], sources, targets[which]);
            same(name);
            snprintf(name, sizeof name, "gf_%dvect_mad%s", count, set);
            for (int which = 0; which < 2; which++)
                ((mads_fn *)function(which, name))(length, k, column, tables[which], sources[0], targets[which]);
            same(name);
        }
        if (!strcmp(set, "_avx2") || !strcmp(set, "_avx512")) continue;
        prepare("_base", 1, 32);
        length = length / 32 * 32 + (vector && round % 8 == 0);
        /* The real one stores whole lines. */
        sources[0] = data[0];
        for (int which = 0; which < 2; which++) {
            targets[which][0] = parity[which][0];
            ((void (*)(u8, u8 *))function(which, "gf_vect_mul_init"))(matrix[0][0], tables[which]);
        }
        snprintf(name, sizeof name, "gf_vect_mul%s", set);
        int returned[2] = {0, 0};
        for (int which = 0; which < 2; which++) {
            /* Before version 2.31, the real one returned nothing here, and took any length. */
            if (!strcmp(set, "_base") && which == 1)
                ((void (*)(int, u8 *, u8 *, u8 *))function(which, name))(length, tables[which], sources[0], targets[which][0]);
            else if (!strcmp(set, "_base"))
                CHECK((((multiply_fn *)function(which, name))(length, tables[which], sources[0], targets[which][0]) != 0) == (length % 32 != 0));
            else
                returned[which] = ((multiply_fn *)function(which, name))(length, tables[which], sources[0], targets[which][0]);
        }
        CHECK((returned[0] != 0) == (returned[1] != 0));
        if (returned[0] == 0) same(name);
    }
}

/* A table that the caller wrote by other means, and targets that are sources or each other. */
static void odd_calls(void) {
    for (int round = 0; round < 40; round++) {
        prepare("_sse", 4, 64);
        random_bytes(tables[0], (size_t)(k * rows * 32));
        memcpy(tables[1], tables[0], (size_t)(k * rows * 32));
        for (int which = 0; which < 2; which++)
            ((encode_fn *)function(which, which ? "ec_encode_data_sse" : "ec_encode_data"))(length / 64 * 64, k, rows, tables[which], sources, targets[which]);
        same("ec_encode_data with any table");
    }
    for (int round = 0; round < 40; round++) {
        prepare("", 4, 64);
        rows = 4;
        /* In place: the first source is the first target. */
        memcpy(targets[0][0], sources[0], (size_t)length);
        u8 *in_place[NODES];
        memcpy(in_place, sources, sizeof sources);
        in_place[0] = targets[0][0];
        ((encode_fn *)function(0, "ec_encode_data"))(length, k, rows, tables[0], in_place, targets[0]);
        ((encode_fn *)function(1, "ec_encode_data"))(length, k, rows, tables[1], sources, targets[1]);
        for (int i = 0; i < rows; i++) CHECK(memcmp(targets[0][i], targets[1][i], (size_t)length) == 0);
    }
}

/* One of several threads: rewrites a table of its own in place, and uses another that all threads have. */
static void *thread(void *argument) {
    enum { SOURCES = 5, TARGETS = 3, BYTES = 3000 };
    static u8 shared[SOURCES * TARGETS * 32];
    u8 *memory = malloc((SOURCES + 2 * TARGETS) * BYTES), own[2][SOURCES * TARGETS * 32], coefficients[SOURCES * TARGETS];
    u8 *read[SOURCES], *written[2][TARGETS];
    uint64_t random = (uintptr_t)argument;
    CHECK(memory);
    for (int i = 0; i < (SOURCES + 2 * TARGETS) * BYTES; i++) memory[i] = (u8)(i * 2654435761u >> 9);
    for (int i = 0; i < SOURCES; i++) read[i] = memory + i * BYTES;
    for (int i = 0; i < 2 * TARGETS; i++) written[i % 2][i / 2] = memory + (SOURCES + i) * BYTES;
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < SOURCES * TARGETS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            coefficients[i] = (u8)(random >> 56);
        }
        /* The shared table stays zeros; the own one changes in every twentieth round. */
        if (round % 20 == 1) make_tables("", SOURCES, TARGETS, coefficients, (u8 *[]){own[0], own[1]});
        for (int which = 0; which < 2; which++)
            ((encode_fn *)function(which, "ec_encode_data"))(BYTES, SOURCES, TARGETS, round % 2 ? own[which] : shared, read,
                                                             written[which]);
        for (int i = 0; i < TARGETS; i++) CHECK(memcmp(written[0][i], written[1][i], BYTES) == 0);
    }
    free(memory);
    return NULL;
}

static void threads(void) {
    enum { THREADS = 8 };
    pthread_t running[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&running[i], NULL, thread, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(running[i], NULL) == 0);
}

static void matrices(void) {
    const char *generators[] = {"gf_gen_rs_matrix", "gf_gen_cauchy1_matrix"};
    for (int n = 1; n <= NODES; n++)
        for (k = 1; k <= n; k++)
            for (int g = 0; g < 2; g++) {
                for (int which = 0; which < 2; which++) ((void (*)(u8 *, int, int))function(which, generators[g]))(matrix[which], n, k);
                CHECK(memcmp(matrix[0], matrix[1], (size_t)(n * k)) == 0);
            }
    for (int round = 0; round < 400; round++) {
        int n = 1 + (int)next(20), returned[2];
        static u8 inverse[2][NODES * NODES];
        random_bytes(matrix[0], (size_t)(n * n));
        if (next(3) == 0) memcpy(matrix[0], matrix[0] + n * (n - 1), (size_t)n);
        memcpy(matrix[1], matrix[0], (size_t)(n * n));
        for (int which = 0; which < 2; which++) returned[which] = ((int (*)(u8 *, u8 *, int))function(which, "gf_invert_matrix"))(matrix[which], inverse[which], n);
        CHECK(returned[0] == returned[1]);
        CHECK(memcmp(inverse[0], inverse[1], (size_t)(n * n)) == 0 && memcmp(matrix[0], matrix[1], (size_t)(n * n)) == 0);
    }
    for (int a = 0; a < 256; a++) {
        CHECK(((u8(*)(u8))function(0, "gf_inv"))((u8)a) == ((u8(*)(u8))function(1, "gf_inv"))((u8)a));
        for (int b = 0; b < 256; b++)
            CHECK(((u8(*)(u8, u8))function(0, "gf_mul"))((u8)a, (u8)b) == ((u8(*)(u8, u8))function(1, "gf_mul"))((u8)a, (u8)b));
    }
}

/* The roofline: each byte of data is read and added once, and each byte of parity is stored, without any
 * multiplication. Of these ways of doing it, the fastest counts. */
#ifdef __x86_64__
#include <immintrin.h>
#define ROOFLINE(name, isa, vector, load, add, store)                                                                  \
    __attribute__((target(isa))) static void name(void) {                                                              \
        enum { STEP = 4 };                                                                                             \
        for (int at = 0; at < length; at += STEP * (int)sizeof(vector)) {                                              \
            vector sums[STEP];                                                                                         \
            for (int i = 0; i < STEP; i++) sums[i] = load((const void *)((const vector *)(sources[0] + at) + i));      \
            for (int j = 1; j < k; j++)                                                                                \
                for (int i = 0; i < STEP; i++)                                                                         \
                    sums[i] = add(sums[i], load((const void *)((const vector *)(sources[j] + at) + i)));               \
            for (int j = 0; j < rows; j++)                                                                             \
                for (int i = 0; i < STEP; i++) store((void *)((vector *)(targets[0][j] + at) + i), sums[i]);           \
        }                                                                                                              \
    }
ROOFLINE(avx2, "avx2", __m256i, _mm256_load_si256, _mm256_xor_si256, _mm256_store_si256)
ROOFLINE(avx2_past_cache, "avx2", __m256i, _mm256_load_si256, _mm256_xor_si256, _mm256_stream_si256)
ROOFLINE(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_xor_si512, _mm512_store_si512)
ROOFLINE(avx512_past_cache, "avx512f", __m512i, _mm512_load_si512, _mm512_xor_si512, _mm512_stream_si512)
#endif

enum { ROOFLINES = 4, PAIRS = 61 };

/* Returns how many rooflines this machine has. */
static int rooflines(void (**found)(void)) {
    int count = 0;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) found[count++] = avx2, found[count++] = avx2_past_cache;
    if (__builtin_cpu_supports("avx512f")) found[count++] = avx512, found[count++] = avx512_past_cache;
#else
    (void)found;
#endif
    return count;
}

static encode_fn *encode[2];

static double seconds_of(int which, void (**roofline)(void), int calls) {
    double start = 0;
    /* The first call finds in the cache what the sample before has left there, so it does not count. */
    for (int i = -1; i < calls; i++) {
        if (i == 0) start = now();
        if (which < 2) encode[which](length, k, rows, tables[which], sources, targets[0]);
        else roofline[which - 2]();
    }
    return (now() - start) / calls;
}

/* Prints GB/s of data of both, the median of the ratios of pairs of samples, and our share of the roofline. */
static void measure_shape(void) {
    void (*roofline[ROOFLINES])(void);
    int ways = 2 + rooflines(roofline), calls = (8 << 20) / (k * length) + 1;
    double times[2 + ROOFLINES][PAIRS], ratios[PAIRS], best = 1e9;
    for (int i = 0; i < 200; i++) encode[0](length, k, rows, tables[0], sources, targets[0]);
    for (int pair = 0; pair < PAIRS; pair++) {
        for (int turn = 0; turn < ways; turn++) times[(pair + turn) % ways][pair] = seconds_of((pair + turn) % ways, roofline, calls);
        ratios[pair] = times[1][pair] / times[0][pair];
    }
    for (int way = 0; way < ways; way++) qsort(times[way], PAIRS, sizeof(double), ascending);
    for (int way = 2; way < ways; way++)
        if (times[way][PAIRS / 2] < best) best = times[way][PAIRS / 2];
    qsort(ratios, PAIRS, sizeof(double), ascending);
    printf("%d+%d, %7d bytes: ours %6.2f GB/s, real %6.2f GB/s, ratio %.2f (%.2f to %.2f)", k, rows, length,
           k * length / times[0][PAIRS / 2] * 1e-9, k * length / times[1][PAIRS / 2] * 1e-9, ratios[PAIRS / 2],
           ratios[PAIRS / 4], ratios[PAIRS * 3 / 4]);
    if (ways > 2) printf(", roofline %6.2f GB/s: %.2f of it", k * length / best * 1e-9, best / times[0][PAIRS / 2]);
    printf("\n");
}

static void measure(void) {
    const int shapes[][2] = {{10, 4}, {6, 3}, {4, 2}, {12, 4}}, sizes[] = {4096, 65536, 1 << 20};
    u8 *memory = aligned_alloc(64, 32u << 20);
    CHECK(memory);
    random_bytes(memory, 32u << 20);
    for (int which = 0; which < 2; which++) encode[which] = function(which, "ec_encode_data");
    for (int s = 0; s < 4; s++)
        for (int z = 0; z < 3; z++) {
            k = shapes[s][0], rows = shapes[s][1], length = sizes[z];
            for (int i = 0; i < k + rows; i++) {
                u8 *at = memory + (size_t)i * ((size_t)length + 576);
                if (i < k) sources[i] = at;
                else targets[0][i - k] = at;
            }
            ((void (*)(u8 *, int, int))function(1, "gf_gen_cauchy1_matrix"))(matrix[0], k + rows, k);
            make_tables("", k, rows, matrix[0] + k * k, (u8 *[]){tables[0], tables[1]});
            measure_shape();
        }
    /* What a table costs that was not seen before. */
    k = 10, rows = 4, length = 4096;
    double total = 0;
    for (int i = 0; i < 200; i++) {
        random_bytes(matrix[0], 40);
        make_tables("", k, rows, matrix[0], (u8 *[]){tables[0], tables[1]});
        double start = now();
        ((encode_fn *)function(0, "ec_encode_data"))(length, k, rows, tables[0], sources, targets[0]);
        total += now() - start;
    }
    printf("the first call with a table: %.0f microseconds\n", total / 200 * 1e6);
    free(memory);
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    for (int which = 0; which < 2; which++) {
        library[which] = dlopen(arguments[which + 1], RTLD_NOW | RTLD_LOCAL);
        if (!library[which]) fprintf(stderr, "%s\n", dlerror());
        CHECK(library[which]);
    }
    CHECK(dlsym(library[0], "paritas_isal_version") && !dlsym(library[1], "paritas_isal_version"));
    if (count > 3) {
        measure();
        return 0;
    }
    for (int i = 0; i < 6; i++)
        if (has(sets[i])) call_all(sets[i]);
    odd_calls();
    threads();
    matrices();
    CHECK(((size_t(*)(void))function(0, "paritas_isal_programs"))() > 10);
    printf("ISA-L: the same bytes from all functions\n");
    return 0;
}
