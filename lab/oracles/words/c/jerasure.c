/* Serves Jerasure's reed_sol_van (family reed-solomon) and reed_sol_r6_op (raid6). */
#include <jerasure.h>
#include <jerasure/reed_sol.h>

#include "serve.h"

int main(void) {
    struct request r;
    while (next_request(&r)) {
        char **data = (char **)r.shards, **coding = data + r.k;
        int raid6 = !strcmp(r.family, "raid6");
        int *matrix = raid6 ? reed_sol_r6_coding_matrix(r.k, r.w) : reed_sol_vandermonde_coding_matrix(r.k, r.m, r.w);
        if (!matrix) refuse("Jerasure refuses to make the matrix");
        if (r.encodes && raid6) reed_sol_r6_encode(r.k, r.w, data, coding, (int)r.length);
        else if (r.encodes) jerasure_matrix_encode(r.k, r.m, r.w, matrix, data, coding, (int)r.length);
        else if (jerasure_matrix_decode(r.k, r.m, r.w, matrix, 1, r.erasures, data, coding, (int)r.length))
            refuse("Jerasure cannot decode");
        free(matrix);
        reply(&r);
    }
}
