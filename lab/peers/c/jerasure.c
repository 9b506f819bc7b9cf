/* Measures a technique of Jerasure. The variant is TECHNIQUE[@W[@PACKET]]: reed_sol_van, reed_sol_r6_op, cauchy_orig,
 * cauchy_good (the default), liberation, blaum_roth or liber8tion. Without W it is 8 for the Reed-Solomon techniques, and
 * the smallest that the shape allows for the others. Packets of bit matrices have 2 KiB unless PACKET says otherwise;
 * schedules are Jerasure's default, smart ones. */
#include <jerasure.h>
#include <jerasure/cauchy.h>
#include <jerasure/liberation.h>
#include <jerasure/reed_sol.h>

#include "peer.h"

static struct peer p;
static int w, packet = 2048, is_raid6, *matrix, *bits, **schedule, erasures[MAX];

static void encode(void) {
    char **shards = (char **)p.shards;
    if (schedule) jerasure_schedule_encode(p.k, p.m, w, schedule, shards, shards + p.k, p.bytes, packet);
    else if (is_raid6) reed_sol_r6_encode(p.k, w, shards, shards + p.k, p.bytes);
    else jerasure_matrix_encode(p.k, p.m, w, matrix, shards, shards + p.k, p.bytes);
}

static void decode(void) {
    char **shards = (char **)p.shards;
    if (schedule)
        jerasure_schedule_decode_lazy(p.k, p.m, w, bits, erasures, shards, shards + p.k, p.bytes, packet, 1);
    else
        jerasure_matrix_decode(p.k, p.m, w, matrix, 1, erasures, shards, shards + p.k, p.bytes);
}

/* Returns the smallest w from `least` on for which w plus `more` is a prime. */
static int prime_from(int least, int more) {
    for (int candidate = least;; candidate++) {
        int prime = candidate + more > 2;
        for (int d = 2; d * d <= candidate + more; d++) prime &= (candidate + more) % d != 0;
        if (prime) return candidate;
    }
}

/* Makes the matrix of a technique; returns 0 if the shape or W does not allow it. */
static int choose(const char *technique) {
    int for_raid6 = p.m == 2 && (!w || p.k <= w);
    if (!strcmp(technique, "reed_sol_van")) {
        w = w ? w : 8;
        matrix = reed_sol_vandermonde_coding_matrix(p.k, p.m, w);
    } else if (!strcmp(technique, "reed_sol_r6_op") && p.m == 2) {
        w = w ? w : 8;
        is_raid6 = 1;
        matrix = reed_sol_r6_coding_matrix(p.k, w);
    } else if (!strcmp(technique, "liberation") && for_raid6) {
        w = w ? w : prime_from(p.k < 3 ? 3 : p.k, 0);
        bits = liberation_coding_bitmatrix(p.k, w);
    } else if (!strcmp(technique, "blaum_roth") && for_raid6) {
        w = w ? w : prime_from(p.k < 4 ? 4 : p.k, 1);
        bits = blaum_roth_coding_bitmatrix(p.k, w);
    } else if (!strcmp(technique, "liber8tion") && p.m == 2 && p.k <= 8) {
        w = 8;
        bits = liber8tion_coding_bitmatrix(p.k);
    } else if (!strncmp(technique, "cauchy_", 7)) {
        for (int n = 2; !w; n++) w = 1 << n >= p.k + p.m ? n : 0;
        int is_good = !strcmp(technique, "cauchy_good");
        int *cauchy = is_good ? cauchy_good_general_coding_matrix(p.k, p.m, w) : cauchy_original_coding_matrix(p.k, p.m, w);
        bits = cauchy ? jerasure_matrix_to_bitmatrix(p.k, p.m, w, cauchy) : 0;
    }
    return matrix || bits;
}

int main(int argc, char **argv) {
    p = peer_start(argv);
    char *detail = argc > 6 ? argv[6] : "cauchy_good";
    const char *technique = strsep(&detail, "@");
    if (detail) w = atoi(strsep(&detail, "@"));
    if (detail) packet = atoi(detail);
    if (!choose(technique)) exit(3);
    if (bits) schedule = jerasure_smart_bitmatrix_to_schedule(p.k, p.m, w, bits);
    /* Jerasure needs whole strips, so shards are shortened to whole strips, and only those bytes are counted. */
    if (bits) p.bytes = p.bytes / ((size_t)w * packet) * ((size_t)w * packet);
    if (!p.bytes) exit(3);
    for (int i = 0; i < p.lost; i++) erasures[i] = i;
    erasures[p.lost] = -1;
    printf("bytes %zu\n", p.bytes);
    peer_check(&p, encode, decode);
    peer_serve(p.decode ? decode : encode);
}
