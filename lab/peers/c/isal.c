/* Measures ISA-L's ec_encode_data with its Cauchy matrix or, for the variant raid6 (m must be 2), its pq_gen. The
 * variants avx2 and avx512 call ec_encode_data for that instruction set; otherwise ISA-L chooses the best one. Where the
 * processor has GFNI, ec_init_tables makes tables that only GFNI's kernels read, so these variants use its base version. */
#include <isa-l.h>

#include "peer.h"

/* Exported by the library, but declared in no header. */
void ec_encode_data_avx512(int, int, int, unsigned char *, unsigned char **, unsigned char **);
void ec_init_tables_base(int, int, unsigned char *, unsigned char *);

static struct peer p;
static void (*encode_data)(int, int, int, unsigned char *, unsigned char **, unsigned char **) = ec_encode_data;
static void (*init_tables)(int, int, unsigned char *, unsigned char *) = ec_init_tables;
static unsigned char matrix[MAX * MAX], tables[MAX * MAX * 32], decode_tables[MAX * MAX * 32];
static unsigned char *sources[MAX];
static void *pq[MAX];

static void encode(void) { encode_data(p.bytes, p.k, p.m, tables, p.shards, p.shards + p.k); }

static void decode(void) { encode_data(p.bytes, p.k, p.m, decode_tables, sources, p.shards); }

static void raid6(void) { pq_gen(p.k + 2, p.bytes, pq); }

/* Prepares the tables that compute the first m data shards from the other data shards and all parity. */
static void plan_decode(void) {
    unsigned char rows[MAX * MAX], inverse[MAX * MAX];
    for (int i = 0; i < p.k; i++) {
        sources[i] = p.shards[p.m + i];
        memcpy(rows + i * p.k, matrix + (p.m + i) * p.k, p.k);
    }
    if (gf_invert_matrix(rows, inverse, p.k)) exit(2);
    init_tables(p.k, p.m, inverse, decode_tables);
}

/* Selects the function that the variant names. Exits with 3 if the processor lacks its instructions, or it is not for the shape. */
static void choose(const char *variant) {
    if (!strcmp(variant, "raid6") && p.m != 2) exit(3);
    if (!strncmp(variant, "avx", 3)) init_tables = ec_init_tables_base;
    if (!strcmp(variant, "avx2")) {
        if (!__builtin_cpu_supports("avx2")) exit(3);
        encode_data = ec_encode_data_avx2;
    } else if (!strcmp(variant, "avx512")) {
        if (!__builtin_cpu_supports("avx512bw")) exit(3);
        encode_data = ec_encode_data_avx512;
    }
}

int main(int argc, char **argv) {
    p = peer_start(argv);
    if (argc > 6) choose(argv[6]);
    gf_gen_cauchy1_matrix(matrix, p.k + p.m, p.k);
    init_tables(p.k, p.m, matrix + p.k * p.k, tables);
    plan_decode();
    peer_check(&p, encode, decode);
    if (argc > 6 && !strcmp(argv[6], "raid6")) {
        for (int i = 0; i < p.k + 2; i++) pq[i] = p.shards[i];
        peer_serve(raid6);
    } else {
        peer_serve(p.decode ? decode : encode);
    }
}
