/* Serves ISA-L: ec_encode_data with gf_gen_cauchy1_matrix (family isal-cauchy) or gf_gen_rs_matrix (isal-rs), and pq_gen
 * (raid6). raid6 is decoded with the matrix of isal-rs. */
#include <isa-l.h>

#include "serve.h"

static unsigned char matrix[MAX * MAX], rows[MAX * MAX], inverse[MAX * MAX], coefficients[MAX * MAX];
static unsigned char tables[32 * MAX * MAX], *sources[MAX], *targets[MAX];

/* Computes the lost shards from the first k shards that are left. */
static void decode(struct request *r) {
    char lost[MAX] = {0};
    for (int i = 0; i < r->lost; i++) lost[r->erasures[i]] = 1;
    for (int i = 0, used = 0; used < r->k; i++) {
        if (lost[i]) continue;
        sources[used] = r->shards[i];
        memcpy(rows + used++ * r->k, matrix + i * r->k, r->k);
    }
    if (gf_invert_matrix(rows, inverse, r->k)) refuse("ISA-L finds the matrix singular");
    memset(coefficients, 0, sizeof coefficients);
    for (int i = 0; i < r->lost; i++) {
        targets[i] = r->shards[r->erasures[i]];
        for (int j = 0; j < r->k; j++)
            for (int l = 0; l < r->k; l++)
                coefficients[i * r->k + j] ^= gf_mul(matrix[r->erasures[i] * r->k + l], inverse[l * r->k + j]);
    }
    ec_init_tables(r->k, r->lost, coefficients, tables);
    ec_encode_data(r->length, r->k, r->lost, tables, sources, targets);
}

int main(void) {
    struct request r;
    while (next_request(&r)) {
        if (!strcmp(r.family, "isal-cauchy")) gf_gen_cauchy1_matrix(matrix, r.k + r.m, r.k);
        else gf_gen_rs_matrix(matrix, r.k + r.m, r.k);
        if (!r.encodes) {
            decode(&r);
        } else if (!strcmp(r.family, "raid6") && r.k > 1) { /* pq_gen needs two sources or more */
            if (pq_gen(r.k + 2, (int)r.length, (void **)r.shards)) refuse("pq_gen fails");
        } else {
            ec_init_tables(r.k, r.m, matrix + r.k * r.k, tables);
            ec_encode_data(r.length, r.k, r.m, tables, r.shards, r.shards + r.k);
        }
        reply(&r);
    }
}
