/* ISA-L: ec_encode_data with its Cauchy matrix; raid6_pq_gen where m is 2 and the variant says so. */
#include <isa-l.h>

#include "peer.h"

static struct peer p;
static unsigned char matrix[MAX * MAX], tables[MAX * MAX * 32], decode_tables[MAX * MAX * 32];
static unsigned char *sources[MAX];
static void *pq[MAX];

static void encode(void) { ec_encode_data(p.bytes, p.k, p.m, tables, p.shards, p.shards + p.k); }

static void decode(void) { ec_encode_data(p.bytes, p.k, p.m, decode_tables, sources, p.shards); }

static void raid6(void) { pq_gen(p.k + 2, p.bytes, pq); }

/* The first m data shards are lost; the other data and all parity make them. */
static void plan_decode(void) {
    unsigned char rows[MAX * MAX], inverse[MAX * MAX];
    for (int i = 0; i < p.k; i++) {
        sources[i] = p.shards[p.m + i];
        memcpy(rows + i * p.k, matrix + (p.m + i) * p.k, p.k);
    }
    if (gf_invert_matrix(rows, inverse, p.k)) exit(2);
    ec_init_tables(p.k, p.m, inverse, decode_tables);
}

int main(int argc, char **argv) {
    p = peer_start(argv);
    gf_gen_cauchy1_matrix(matrix, p.k + p.m, p.k);
    ec_init_tables(p.k, p.m, matrix + p.k * p.k, tables);
    plan_decode();
    peer_check(&p, encode, decode);
    if (argc > 6 && !strcmp(argv[6], "raid6")) {
        for (int i = 0; i < p.k + 2; i++) pq[i] = p.shards[i];
        peer_serve(raid6);
    } else {
        peer_serve(p.decode ? decode : encode);
    }
}
