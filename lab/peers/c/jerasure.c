/* Measures the technique of Jerasure that the variant names (cauchy_good by default), with its default schedules and
 * packets of 2 KiB. */
#include <jerasure.h>
#include <jerasure/cauchy.h>
#include <jerasure/liberation.h>
#include <jerasure/reed_sol.h>

#include "peer.h"

enum { PACKET = 2048 };

static struct peer p;
static int w, *matrix, *bits, **schedule, erasures[MAX];

static void encode(void) {
    char **shards = (char **)p.shards;
    if (schedule) jerasure_schedule_encode(p.k, p.m, w, schedule, shards, shards + p.k, p.bytes, PACKET);
    else jerasure_matrix_encode(p.k, p.m, w, matrix, shards, shards + p.k, p.bytes);
}

static void decode(void) {
    char **shards = (char **)p.shards;
    if (schedule)
        jerasure_schedule_decode_lazy(p.k, p.m, w, bits, erasures, shards, shards + p.k, p.bytes, PACKET, 1);
    else
        jerasure_matrix_decode(p.k, p.m, w, matrix, 1, erasures, shards, shards + p.k, p.bytes);
}

int main(int argc, char **argv) {
    p = peer_start(argv);
    const char *technique = argc > 6 ? argv[6] : "cauchy_good";
    if (!strcmp(technique, "reed_sol_van")) {
        w = 8;
        matrix = reed_sol_vandermonde_coding_matrix(p.k, p.m, w);
    } else if (!strcmp(technique, "liberation")) {
        for (w = p.k < 3 ? 3 : p.k | 1;; w += 2) {
            int prime = 1;
            for (int d = 3; d * d <= w; d += 2) prime &= w % d != 0;
            if (prime) break;
        }
        bits = liberation_coding_bitmatrix(p.k, w);
    } else {
        for (w = 2; 1 << w < p.k + p.m; w++) {}
        matrix = cauchy_good_general_coding_matrix(p.k, p.m, w);
        bits = jerasure_matrix_to_bitmatrix(p.k, p.m, w, matrix);
    }
    if (bits) schedule = jerasure_smart_bitmatrix_to_schedule(p.k, p.m, w, bits);
    /* Jerasure needs whole strips, so shards are shortened to whole strips, and only those bytes are counted. */
    if (bits) p.bytes = p.bytes / ((size_t)w * PACKET) * ((size_t)w * PACKET);
    if (!p.bytes) exit(3);
    int lost = p.m < p.k ? p.m : p.k;
    for (int i = 0; i < lost; i++) erasures[i] = i;
    erasures[lost] = -1;
    printf("bytes %zu\n", p.bytes);
    peer_check(&p, encode, decode);
    peer_serve(p.decode ? decode : encode);
}
