/* Measures the loops of xor.c, and copying, in pairs with the explicit loop of 256 bits.
 *
 *     loops SET PACKET PAIRS
 *
 * Prints CSV: a line for each pair, with the seconds of a run over SET bytes. A region is a packet. "in place"
 * is r3 = r2, as a schedule adds a packet to its target; "apart" has three regions. Every loop's answer is
 * compared with the bytes' XOR before it is timed. */

#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void loop(char *, char *, char *, size_t);
loop words, compiled, compiled_ivdep, explicit_128, explicit_256;

static void copy(char *r1, char *r2, char *r3, size_t bytes)
{
    (void)r2;
    memcpy(r3, r1, bytes);
}

static const struct {
    const char *name;
    loop *run;
} LOOPS[] = {
    {"words of 64 bits", words},
    {"vectorised by the compiler", compiled},
    {"vectorised by the compiler, ivdep", compiled_ivdep},
    {"explicit, 128 bits", explicit_128},
    {"explicit, 256 bits", explicit_256},
    {"copy", copy},
};

/* Regions of the loops, one after the other: sources, targets, and results if these are apart. */
struct memory {
    char *bytes;
    size_t packet, packets;
    int apart;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void pass(loop *run, const struct memory *m)
{
    size_t side = m->packet * m->packets;
    for (size_t p = 0; p < m->packets; p++) {
        char *r1 = m->bytes + p * m->packet;
        run(r1, r1 + side, m->apart ? r1 + 2 * side : r1 + side, m->packet);
    }
}

/* Returns the seconds of a pass, of so many that the clock does not matter. */
static double sample(loop *run, const struct memory *m)
{
    size_t passes = 1 + (8 << 20) / (m->packet * m->packets);
    double start = now();
    for (size_t i = 0; i < passes; i++)
        pass(run, m);
    return (now() - start) / (double)passes;
}

static void fill(const struct memory *m)
{
    unsigned state = 1;
    for (size_t i = 0; i < 3 * m->packet * m->packets; i++) {
        state = state * 1664525u + 1013904223u;
        m->bytes[i] = (char)(state >> 24);
    }
}

/* Whether a loop computes the XOR of every byte; a copy has the source. */
static int is_right(loop *run, const struct memory *m)
{
    size_t side = m->packet * m->packets;
    char *expected = malloc(side);
    fill(m);
    for (size_t i = 0; expected && i < side; i++)
        expected[i] = run == copy ? m->bytes[i] : (char)(m->bytes[i] ^ m->bytes[side + i]);
    pass(run, m);
    int right = expected && memcmp(expected, m->bytes + (m->apart ? 2 : 1) * side, side) == 0;
    free(expected);
    return right;
}

static void measure(size_t which, const struct memory *m, long pairs)
{
    for (long i = 0; i < pairs; i++) {
        double base = i % 2 ? sample(explicit_256, m) : 0;
        double subject = sample(LOOPS[which].run, m);
        if (i % 2 == 0)
            base = sample(explicit_256, m);
        printf("\"%s\",%s,%.9f,%.9f\n", LOOPS[which].name, m->apart ? "apart" : "in place", subject, base);
    }
}

int main(int count, char **words_given)
{
    if (count != 4) {
        fprintf(stderr, "usage: loops SET PACKET PAIRS\n");
        return 3;
    }
    size_t set = strtoul(words_given[1], NULL, 10), packet = strtoul(words_given[2], NULL, 10);
    long pairs = strtol(words_given[3], NULL, 10);
    struct memory m = {NULL, packet, packet ? set / packet / 3 : 0, 0};
    if (packet == 0 || packet % 64 || m.packets == 0 || pairs < 1) {
        fprintf(stderr, "PACKET must be a multiple of 64 of which SET has three; PAIRS at least 1\n");
        return 3;
    }
    void *bytes;
    if (posix_memalign(&bytes, 64, 3 * packet * m.packets)) {
        fprintf(stderr, "there is no memory for %zu bytes\n", set);
        return 8;
    }
    m.bytes = bytes;
    printf("loop,regions,seconds,base_seconds\n");
    for (m.apart = 0; m.apart < 2; m.apart++) {
        for (size_t which = 0; which < sizeof LOOPS / sizeof *LOOPS; which++) {
            if (!is_right(LOOPS[which].run, &m)) {
                fprintf(stderr, "%s: wrong bytes\n", LOOPS[which].name);
                return 7;
            }
            measure(which, &m, pairs);
        }
    }
    free(bytes);
    return 0;
}
