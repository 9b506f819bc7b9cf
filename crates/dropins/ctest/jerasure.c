/* Compares a libJerasure.so.2 of ours with the real one, both given by path: the same random calls must leave the same
 * bytes. With a third argument, measures both instead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "timing.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s (k = %d, m = %d, w = %d, %d bytes, packets of %d)\n", __FILE__, __LINE__,        \
                    #condition, k, m, w, bytes, packet);                                                               \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The two libraries: ours is 0. */
static void *library[2];
static int k, m, w, bytes, packet;

#pragma GCC diagnostic ignored "-Wpedantic"
static void *function(int which, const char *name) {
    void *found = dlsym(library[which], name);
    if (!found) fprintf(stderr, "library %d lacks %s\n", which, name);
    CHECK(found);
    return found;
}

/* Calls a function of one of the libraries. */
#define CALL(which, type, name, types) ((type(*) types)function(which, name))

static uint64_t state = 7;

static int next(int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned)below);
}

enum { NODES = 40, ROOM = 1 << 16 };

static char *device[2][NODES], *kept[NODES];

static void fill_devices(void) {
    for (int i = 0; i < k + m; i++) {
        for (int at = 0; at < ROOM; at++) kept[i][at] = (char)next(256);
        for (int which = 0; which < 2; which++) memcpy(device[which][i], kept[i], ROOM);
    }
}

static void same_devices(void) {
    for (int i = 0; i < k + m; i++) CHECK(memcmp(device[0][i], device[1][i], ROOM) == 0);
}

/* Compares two arrays of int that the libraries returned. Returns that of ours. */
static int *same_ints(int *a, int *b, int count) {
    CHECK((a == NULL) == (b == NULL));
    if (a) CHECK(memcmp(a, b, (size_t)count * sizeof(int)) == 0);
    free(b);
    return a;
}

/* Loses up to m random devices of both: their content becomes something else. */
static int lose(int *erasures) {
    int count = 1 + next(m), lost[NODES] = {0};
    for (int i = 0; i < count;) {
        int one = next(k + m);
        if (lost[one]) continue;
        lost[one] = 1;
        erasures[i++] = one;
        for (int which = 0; which < 2; which++) memset(device[which][one], 0x5A, (size_t)bytes);
    }
    erasures[count] = -1;
    return count;
}

/* Encodes with a matrix of words, and decodes. */
static void words(int *matrix) {
    typedef void encode(int, int, int, int *, char **, char **, int);
    typedef int decode(int, int, int, int *, int, int *, char **, char **, int);
    bytes = 8 * (1 + next(900));
    fill_devices();
    for (int which = 0; which < 2; which++)
        ((encode *)function(which, "jerasure_matrix_encode"))(k, m, w, matrix, device[which], device[which] + k, bytes);
    same_devices();
    for (int i = 0; i < k + m; i++) memcpy(kept[i], device[0][i], ROOM);
    int erasures[NODES + 1];
    lose(erasures);
    for (int which = 0; which < 2; which++) {
        int ones = 1;
        for (int i = 0; i < k; i++) ones &= matrix[i] == 1;
        int done = ((decode *)function(which, "jerasure_matrix_decode"))(k, m, w, matrix, ones, erasures, device[which], device[which] + k, bytes);
        CHECK(done == 0);
    }
    same_devices();
    for (int i = 0; i < k + m; i++) CHECK(memcmp(device[0][i], kept[i], ROOM) == 0);

    int erased[NODES] = {0}, *made[2], ids[2][NODES], inverse[2][NODES * NODES];
    for (int i = 0; erasures[i] >= 0; i++) erased[erasures[i]] = 1;
    for (int which = 0; which < 2; which++) {
        made[which] = CALL(which, int *, "jerasure_erasures_to_erased", (int, int, int *))(k, m, erasures);
        CHECK(CALL(which, int, "jerasure_make_decoding_matrix", (int, int, int, int *, int *, int *, int *))(k, m, w, matrix, erased, inverse[which], ids[which]) == 0);
    }
    free(same_ints(made[0], made[1], k + m));
    CHECK(memcmp(ids[0], ids[1], (size_t)k * sizeof(int)) == 0);
    CHECK(memcmp(inverse[0], inverse[1], (size_t)(k * k) * sizeof(int)) == 0);
    /* The target is not among the sources. */
    int sources[NODES], named = next(2);
    for (int i = 0; i < k; i++) sources[i] = next(k + m - 1);
    for (int which = 0; which < 2; which++)
        CALL(which, void, "jerasure_matrix_dotprod", (int, int, int *, int *, int, char **, char **, int))(k, w, matrix, named ? sources : NULL, k + m - 1, device[which], device[which] + k, bytes);
    same_devices();
    /* With w = 1, the row tells which sources are added. */
    int added[NODES];
    for (int i = 0; i < k; i++) added[i] = i == 0 || next(2);
    for (int which = 0; which < 2; which++)
        CALL(which, void, "jerasure_matrix_dotprod", (int, int, int *, int *, int, char **, char **, int))(k, 1, added, NULL, k + m - 1, device[which], device[which] + k, bytes);
    same_devices();
}

/* Encodes with a bit matrix and with schedules, and decodes in all ways. */
static void packets(int *bits) {
    typedef void encode(int, int, int, int *, char **, char **, int, int);
    typedef void run(int, int, int, int **, char **, char **, int, int);
    typedef int decode(int, int, int, int *, int, int *, char **, char **, int, int);
    typedef int lazy(int, int, int, int *, int *, char **, char **, int, int, int);
    packet = 8 * (1 + next(24));
    bytes = packet * w * (1 + next(4));
    while (bytes > ROOM) bytes -= packet * w;
    fill_devices();
    for (int which = 0; which < 2; which++)
        ((encode *)function(which, "jerasure_bitmatrix_encode"))(k, m, w, bits, device[which], device[which] + k, bytes, packet);
    same_devices();
    for (int i = 0; i < k + m; i++) memcpy(kept[i], device[0][i], ROOM);
    const char *makers[] = {"jerasure_smart_bitmatrix_to_schedule", "jerasure_dumb_bitmatrix_to_schedule"};
    for (int s = 0; s < 2; s++) {
        for (int which = 0; which < 2; which++) {
            int **schedule = CALL(which, int **, makers[s], (int, int, int, int *))(k, m, w, bits);
            for (int i = k; i < k + m; i++) memset(device[which][i], 0x33, (size_t)bytes);
            ((run *)function(which, "jerasure_schedule_encode"))(k, m, w, schedule, device[which], device[which] + k, bytes, packet);
            /* A schedule of either library runs in ours. */
            if (which == 1) {
                for (int i = k; i < k + m; i++) memset(device[0][i], 0x33, (size_t)bytes);
                ((run *)function(0, "jerasure_schedule_encode"))(k, m, w, schedule, device[0], device[0] + k, bytes, packet);
                same_devices();
                for (int i = k; i < k + m; i++) memset(device[0][i], 0x33, (size_t)(packet * w));
                CALL(0, void, "jerasure_do_scheduled_operations", (char **, int **, int))(device[0], schedule, packet);
            }
            CALL(which, void, "jerasure_free_schedule", (int **))(schedule);
        }
        for (int i = 0; i < k + m; i++) CHECK(memcmp(device[0][i], kept[i], ROOM) == 0);
        same_devices();
    }
    int erasures[NODES + 1];
    for (int round = 0; round < 3; round++) {
        int count = lose(erasures);
        for (int which = 0; which < 2; which++) {
            int done = 0;
            if (round == 0)
                done = ((decode *)function(which, "jerasure_bitmatrix_decode"))(k, m, w, bits, 0, erasures, device[which], device[which] + k, bytes, packet);
            else if (round == 1 || m != 2)
                done = ((lazy *)function(which, "jerasure_schedule_decode_lazy"))(k, m, w, bits, erasures, device[which], device[which] + k, bytes, packet, next(2));
            else {
                int ***cache = CALL(which, int ***, "jerasure_generate_schedule_cache", (int, int, int, int *, int))(k, m, w, bits, 1);
                done = CALL(which, int, "jerasure_schedule_decode_cache", (int, int, int, int ***, int *, char **, char **, int, int))(k, m, w, cache, erasures, device[which], device[which] + k, bytes, packet);
                CALL(which, void, "jerasure_free_schedule_cache", (int, int, int ***))(k, m, cache);
            }
            CHECK(done == 0 && count > 0);
        }
        for (int i = 0; i < k + m; i++) CHECK(memcmp(device[0][i], kept[i], ROOM) == 0);
        same_devices();
    }
    for (int i = 0; i <= m; i++) erasures[i] = i;
    erasures[m + 1] = -1;
    CHECK(((decode *)function(0, "jerasure_bitmatrix_decode"))(k, m, w, bits, 0, erasures, device[0], device[0] + k, bytes, packet) == -1);
}

static int *both(const char *name) {
    int *made[2];
    for (int which = 0; which < 2; which++) made[which] = CALL(which, int *, name, (int, int, int))(k, m, w);
    return same_ints(made[0], made[1], k * m);
}

static int *bits_of(int *matrix) {
    int *bits[2];
    for (int which = 0; which < 2; which++) bits[which] = CALL(which, int *, "jerasure_matrix_to_bitmatrix", (int, int, int, int *))(k, m, w, matrix);
    return same_ints(bits[0], bits[1], k * m * w * w);
}

static void techniques(void) {
    const int widths[] = {8, 16, 32};
    for (int round = 0; round < 40; round++) {
        w = widths[next(3)], k = 1 + next(14), m = 1 + next(5);
        int *matrix = both("reed_sol_vandermonde_coding_matrix");
        words(matrix);
        free(matrix);
        int *r6[2];
        for (int which = 0; which < 2; which++) r6[which] = CALL(which, int *, "reed_sol_r6_coding_matrix", (int, int))(k, w);
        m = 2;
        int *six = same_ints(r6[0], r6[1], 2 * k);
        words(six);
        free(six);
        fill_devices();
        for (int which = 0; which < 2; which++)
            CHECK(CALL(which, int, "reed_sol_r6_encode", (int, int, char **, char **, int))(k, w, device[which], device[which] + k, bytes) == 1);
        same_devices();
    }
    for (int round = 0; round < 40; round++) {
        w = 2 + next(15), k = 1 + next(12), m = 1 + next(4);
        int *matrix = both(next(2) ? "cauchy_original_coding_matrix" : "cauchy_good_general_coding_matrix");
        if (!matrix) continue;
        int *bits = bits_of(matrix);
        packets(bits);
        free(bits);
        int improved[2][NODES * NODES];
        for (int which = 0; which < 2; which++) {
            memcpy(improved[which], matrix, (size_t)(k * m) * sizeof(int));
            CALL(which, void, "cauchy_improve_coding_matrix", (int, int, int, int *))(k, m, w, improved[which]);
        }
        CHECK(memcmp(improved[0], improved[1], (size_t)(k * m) * sizeof(int)) == 0);
        free(matrix);
    }
    m = 2;
    const char *minimal[] = {"liberation_coding_bitmatrix", "blaum_roth_coding_bitmatrix"};
    const int sizes[2][4] = {{3, 5, 7, 11}, {4, 6, 10, 12}};
    for (int t = 0; t < 3; t++)
        for (int s = 0; s < 4; s++)
            for (k = 2; k <= (t < 2 ? sizes[t][s] : 8); k += 3) {
                int *bits[2];
                w = t < 2 ? sizes[t][s] : 8;
                for (int which = 0; which < 2; which++)
                    bits[which] = t < 2 ? CALL(which, int *, minimal[t], (int, int))(k, w) : CALL(which, int *, "liber8tion_coding_bitmatrix", (int))(k);
                int *one = same_ints(bits[0], bits[1], 2 * k * w * w);
                packets(one);
                free(one);
            }
    // With other widths, some losses of two devices are beyond recovery; stored data may have them all the same.
    for (int t = 0; t < 2; t++)
        for (w = 1; w <= 16; w++)
            for (k = 1; k <= w + 1; k++) {
                int *bits[2];
                for (int which = 0; which < 2; which++) bits[which] = CALL(which, int *, minimal[t], (int, int))(k, w);
                CHECK(!bits[0] == !bits[1]);
                if (bits[0]) free(same_ints(bits[0], bits[1], 2 * k * w * w));
            }
}

static void arithmetic(void) {
    typedef void multiply(char *, int, int, char *, int);
    const char *names[] = {"galois_w08_region_multiply", "galois_w16_region_multiply", "galois_w32_region_multiply"};
    k = 1, m = 1;
    for (int round = 0; round < 20000; round++) {
        w = 1 + next(32);
        int a = next(1 << 30), b = next(1 << 30), results[2][3];
        if (w < 30) a &= (1 << w) - 1, b &= (1 << w) - 1;
        for (int which = 0; which < 2; which++) {
            results[which][0] = CALL(which, int, "galois_single_multiply", (int, int, int))(a, b, w);
            results[which][1] = CALL(which, int, "galois_single_divide", (int, int, int))(a, b, w);
            results[which][2] = CALL(which, int, "cauchy_n_ones", (int, int))(w < 31 ? a : 1, w < 31 ? w : 8);
        }
        CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
    }
    for (int round = 0; round < 200; round++) {
        int t = next(3), factor = next(4) ? next(200) : next(2), adds = next(2), beside = next(3);
        bytes = 64 * (1 + next(50));
        fill_devices();
        for (int which = 0; which < 2; which++)
            ((multiply *)function(which, names[t]))(device[which][0], factor, bytes, device[which][beside ? 1 : 0], beside && adds);
        same_devices();
        for (int which = 0; which < 2; which++) CALL(which, void, "galois_region_xor", (char *, char *, int))(device[which][0], device[which][1], bytes);
        same_devices();
    }
    for (int round = 0; round < 100; round++) {
        k = 1 + next(9), m = 0, w = 8;
        int matrix[2][NODES * NODES], inverse[2][NODES * NODES], returned[2];
        for (int i = 0; i < k * k; i++) matrix[0][i] = next(round % 3 ? 256 : 2);
        memcpy(matrix[1], matrix[0], sizeof matrix[0]);
        for (int which = 0; which < 2; which++) returned[which] = CALL(which, int, "jerasure_invert_matrix", (int *, int *, int, int))(matrix[which], inverse[which], k, w);
        CHECK(returned[0] == returned[1]);
        if (returned[0] == 0) CHECK(memcmp(inverse[0], inverse[1], (size_t)(k * k) * sizeof(int)) == 0);
    }
}

/* A `gf_t` of gf-complete. */
typedef struct gf gf;
struct gf {
    uint32_t (*multiply)(gf *, uint32_t, uint32_t), (*divide)(gf *, uint32_t, uint32_t), (*inverse)(gf *, uint32_t);
    void (*region)(gf *, void *, void *, uint32_t, int, int);
    uint32_t (*extract)(gf *, void *, int, int);
    void *scratch;
};
enum { SPLIT_TABLE = 11, ALTMAP = 0x20 };

/* Returns a field that a library makes: method 0 and polynomial 0 are the usual ones. */
static gf *new_field(int which, int method, int region, unsigned long long polynomial) {
    typedef gf *init(int, int, int, int, unsigned long long, int, int);
    gf *made = ((init *)function(which, "galois_init_field"))(w, method, region, 0, polynomial, method ? w : 0, method ? 4 : 0);
    CHECK(made);
    return made;
}

static void single_words(void) {
    int *a = (int *)device[0][0], *b = (int *)device[0][1];
    fill_devices();
    for (int i = 0; i < 500; i++) {
        int x = w < 32 ? a[i] & ((1 << w) - 1) : a[i], y = w < 32 ? b[i] & ((1 << w) - 1) : b[i];
        const char *names[] = {"galois_single_multiply", "galois_single_divide"};
        for (int t = 0; t < 2; t++) CHECK(CALL(0, int, names[t], (int, int, int))(x, y, w) == CALL(1, int, names[t], (int, int, int))(x, y, w));
    }
}

/* Compares what a `gf_t` of ours computes by itself with one of theirs. */
static void same_field(gf *ours, gf *real) {
    for (int i = 1; i < 20; i++) {
        uint32_t a = (uint32_t)next(1 << 30) >> (w < 30 ? 30 - w : 0), b = 1 + (uint32_t)next((1 << (w < 30 ? w : 30)) - 1);
        CHECK(ours->multiply(ours, a, b) == real->multiply(real, a, b) && ours->divide(ours, a, b) == real->divide(real, a, b));
        CHECK(ours->inverse(ours, b) == real->inverse(real, b));
        fill_devices();
        bytes = 1024;
        ours->region(ours, device[0][0], device[0][1], b, bytes, i % 2);
        real->region(real, device[1][0], device[1][1], b, bytes, i % 2);
        same_devices();
        CHECK(ours->extract(ours, device[0][0], bytes, i % 32) == real->extract(real, device[0][0], bytes, i % 32));
    }
}

/* Checks that a call ends the program, as Jerasure's assertions do. */
static void refused(void (*call)(void)) {
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(1);
        call();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void change(int which, gf *field) { CALL(which, void, "galois_change_technique", (gf *, int))(field, w); }
static void change_to_null(void) { change(0, NULL); }
static void change_to_altmap(void) { change(0, new_field(1, SPLIT_TABLE, ALTMAP, 0)); }
static void init_altmap(void) { new_field(0, 0, ALTMAP, 0); }
static void init_reducible(void) { new_field(0, 0, 0, 0x100); }
static void init_composite(void) { CALL(0, gf *, "galois_init_composite_field", (int, int, int, int, gf *))(16, 0, 0, 2, new_field(0, 0, 0, 0)); }
static void change_to_composite(void) {
    gf *base = new_field(1, 0, 0, 0);
    w = 16;
    change(0, CALL(1, gf *, "galois_init_composite_field", (int, int, int, int, gf *))(16, 0, 0, 2, base));
}

/* Exchanges fields: each library for a field of its own and of the other one, with another polynomial, and back. */
static void fields(void) {
    const int widths[] = {8, 16, 32};
    const unsigned long long polynomials[] = {0x12D, 0x1002D, 0xAF};
    int matrix[12];
    for (int round = 0; round < 12; round++) {
        k = 4, m = 3, w = widths[round % 3];
        for (int which = 0; which < 2; which++) {
            CHECK(CALL(which, int, "galois_init_default_field", (int))(w) == 0);
            gf **fields = function(which, "gfp_array");
            CHECK(fields[w] && fields[w] == CALL(which, gf *, "galois_get_field_ptr", (int))(w));
        }
        single_words();
        for (int i = 0; i < 12; i++) matrix[i] = CALL(0, int, "galois_single_divide", (int, int, int))(1, (i % 4) ^ (4 + i / 4), w);
        words(matrix);
        for (int which = 0; which < 2; which++) {
            gf *made = new_field(round / 6 ? which : !which, SPLIT_TABLE, 0, round / 3 % 2 ? 0 : polynomials[round % 3]);
            change(which, made);
            CHECK(CALL(which, gf *, "galois_get_field_ptr", (int))(w) == made);
        }
        gf *both[2];
        for (int which = 0; which < 2; which++) both[which] = new_field(which, SPLIT_TABLE, 0, polynomials[round % 3]);
        same_field(both[0], both[1]);
        single_words();
        for (int i = 0; i < 12; i++) matrix[i] = CALL(0, int, "galois_single_divide", (int, int, int))(1, (i % 4) ^ (4 + i / 4), w);
        words(matrix);
        bytes = 4096;
        fill_devices();
        const char *names[] = {"galois_w8_region_xor", "galois_w16_region_xor", "galois_w32_region_xor"};
        for (int which = 0; which < 2; which++) CALL(which, void, names[2], (void *, void *, int))(device[which][0], device[which][1], bytes);
        for (int which = 0; which < 2; which++) CALL(which, void, names[round % 3], (void *, void *, int))(device[which][1], device[which][2], bytes);
        same_devices();
        for (int which = 0; which < 2; which++) CHECK(CALL(which, int, "galois_uninit_field", (int))(w) == 0);
    }
    w = 8;
    void (*refusals[])(void) = {change_to_null, change_to_altmap, init_altmap, init_reducible, init_composite, change_to_composite};
    for (int t = 0; t < 6; t++) refused(refusals[t]);
}

/* There is no matrix for more devices than a field has elements, up to the largest counts (with which the
 * real library overflows). */
static void too_many_devices(void) {
    const char *names[] = {"cauchy_original_coding_matrix", "cauchy_good_general_coding_matrix", "reed_sol_vandermonde_coding_matrix"};
    const int counts[][3] = {{200, 57, 8}, {INT_MAX, 1, 8}, {1, INT_MAX, 8}, {INT_MAX, INT_MAX, 16}};
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 4; i++) CHECK(!CALL(0, int *, names[t], (int, int, int))(counts[i][0], counts[i][1], counts[i][2]));
}

/* Prints GB/s of data of both, and the median of the ratios of pairs of samples. */
static void measure(void) {
    enum { PAIRS = 31 };
    const char *kinds[] = {"matrix, w = 8", "schedule, w = 4", "bit matrix, w = 4"};
    const int sizes[] = {4096, 65536, 1 << 20};
    char *memory = aligned_alloc(64, 32u << 20);
    k = 10, m = 4;
    CHECK(memory);
    memset(memory, 7, 32u << 20);
    for (int kind = 0; kind < 3; kind++)
        for (int z = 0; z < 3; z++) {
            bytes = sizes[z], w = kind ? 4 : 8, packet = bytes / w < 2048 ? bytes / w : 2048;
            for (int i = 0; i < k + m; i++) device[0][i] = memory + (size_t)i * ((size_t)bytes + 576);
            int *matrix = CALL(1, int *, kind ? "cauchy_good_general_coding_matrix" : "reed_sol_vandermonde_coding_matrix", (int, int, int))(k, m, w);
            int *bits = CALL(1, int *, "jerasure_matrix_to_bitmatrix", (int, int, int, int *))(k, m, w, matrix);
            int **schedule = CALL(1, int **, "jerasure_smart_bitmatrix_to_schedule", (int, int, int, int *))(k, m, w, bits);
            int calls = (8 << 20) / (k * bytes) + 1;
            double times[2][PAIRS], ratios[PAIRS];
            for (int pair = -1; pair < PAIRS; pair++)
                for (int turn = 0; turn < 2; turn++) {
                    int which = (pair + 1 + turn) % 2;
                    double start = now();
                    for (int i = 0; i < calls; i++) {
                        if (kind == 0) CALL(which, void, "jerasure_matrix_encode", (int, int, int, int *, char **, char **, int))(k, m, w, matrix, device[0], device[0] + k, bytes);
                        if (kind == 1) CALL(which, void, "jerasure_schedule_encode", (int, int, int, int **, char **, char **, int, int))(k, m, w, schedule, device[0], device[0] + k, bytes, packet);
                        if (kind == 2) CALL(which, void, "jerasure_bitmatrix_encode", (int, int, int, int *, char **, char **, int, int))(k, m, w, bits, device[0], device[0] + k, bytes, packet);
                    }
                    if (pair >= 0) times[which][pair] = (now() - start) / calls;
                }
            for (int pair = 0; pair < PAIRS; pair++) ratios[pair] = times[1][pair] / times[0][pair];
            for (int which = 0; which < 2; which++) qsort(times[which], PAIRS, sizeof(double), ascending);
            qsort(ratios, PAIRS, sizeof(double), ascending);
            printf("10+4, %s, %7d bytes: ours %6.2f GB/s, real %6.2f GB/s, ratio %.2f (%.2f to %.2f)\n", kinds[kind], bytes,
                   k * (double)bytes / times[0][PAIRS / 2] * 1e-9, k * (double)bytes / times[1][PAIRS / 2] * 1e-9, ratios[PAIRS / 2],
                   ratios[PAIRS / 4], ratios[PAIRS * 3 / 4]);
        }
}

int main(int count, char **arguments) {
    CHECK(count >= 3);
    for (int which = 0; which < 2; which++) {
        library[which] = dlopen(arguments[which + 1], RTLD_NOW | RTLD_LOCAL);
        if (!library[which]) fprintf(stderr, "%s\n", dlerror());
        CHECK(library[which]);
    }
    CHECK(dlsym(library[0], "paritas_jerasure_version") && !dlsym(library[1], "paritas_jerasure_version"));
    if (count > 3) {
        measure();
        return 0;
    }
    for (int i = 0; i < NODES; i++) {
        kept[i] = aligned_alloc(64, ROOM);
        for (int which = 0; which < 2; which++) device[which][i] = aligned_alloc(64, ROOM);
    }
    arithmetic();
    techniques();
    fields();
    too_many_devices();
    CHECK(CALL(0, size_t, "paritas_jerasure_programs", (void))() > 100);
    printf("Jerasure: the same bytes from all functions\n");
    return 0;
}
