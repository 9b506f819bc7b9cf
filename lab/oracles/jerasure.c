/* Serves Jerasure as an oracle, on standard input and output. A request is one of the lines
 *
 *     encode TECHNIQUE K M W PACKET LENGTH
 *     decode TECHNIQUE K M W PACKET LENGTH LOST...
 *     files TECHNIQUE K M W PACKET LENGTH BUFFER
 *
 * and bytes. The answer is bytes, too:
 *
 *   encode  takes K data shards of LENGTH bytes, and gives M parity shards.
 *   decode  takes K + M shards of LENGTH bytes, and gives all of them restored. The bytes of the nodes LOST are ignored.
 *   files   takes a file of LENGTH bytes, and gives the K + M fragments that Jerasure's example program `encoder` makes
 *           of it, all of one length. It calls the library as `encoder` does: BUFFER bytes of the file at a time, a
 *           multiple of K W PACKET 8, or the whole file if BUFFER is 0.
 *
 * A request that Jerasure refuses ends the program with a message on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerasure.h>
#include <jerasure/cauchy.h>
#include <jerasure/liberation.h>
#include <jerasure/reed_sol.h>

enum { MAX_NODES = 2048 };

static int *bit_matrix(const char *technique, int k, int m, int w) {
    int *matrix = 0;
    if (!strcmp(technique, "liberation")) return liberation_coding_bitmatrix(k, w);
    if (!strcmp(technique, "blaum_roth")) return blaum_roth_coding_bitmatrix(k, w);
    if (!strcmp(technique, "liber8tion")) return liber8tion_coding_bitmatrix(k);
    if (!strcmp(technique, "cauchy_orig")) matrix = cauchy_original_coding_matrix(k, m, w);
    if (!strcmp(technique, "cauchy_good")) matrix = cauchy_good_general_coding_matrix(k, m, w);
    return matrix ? jerasure_matrix_to_bitmatrix(k, m, w, matrix) : 0;
}

static void read_shards(char **shards, int count, size_t length) {
    for (int i = 0; i < count; i++)
        if (fread(shards[i], 1, length, stdin) != length) exit(2);
}

static void write_shards(char **shards, int count, size_t length) {
    for (int i = 0; i < count; i++) fwrite(shards[i], 1, length, stdout);
    fflush(stdout);
}

static size_t whole(size_t length, size_t unit) {
    return (length + unit - 1) / unit * unit;
}

/* Computes the parity of cells as `encoder` does. Returns 0 if Jerasure refuses. */
static int encode_cells(const char *technique, int k, int m, int w, int packet, char **data, char **parity, int cell) {
    if (!strcmp(technique, "reed_sol_r6_op")) return reed_sol_r6_encode(k, w, data, parity, cell);
    if (!strcmp(technique, "reed_sol_van")) {
        int *matrix = reed_sol_vandermonde_coding_matrix(k, m, w);
        if (matrix) jerasure_matrix_encode(k, m, w, matrix, data, parity, cell);
        return matrix != 0;
    }
    int *bits = bit_matrix(technique, k, m, w);
    int **schedule = bits ? jerasure_smart_bitmatrix_to_schedule(k, m, w, bits) : 0;
    if (schedule) jerasure_schedule_encode(k, m, w, schedule, data, parity, cell, packet);
    return schedule != 0;
}

/* Encodes a file in parts of `buffer` bytes, each cut into k cells. The last of several parts is padded with the digit
 * 0, a single part with zero bytes. Returns 0 if Jerasure refuses. */
static int serve_file(const char *technique, int k, int m, int w, int packet, size_t length, size_t buffer) {
    size_t padded = whole(length, (size_t)k * w * (packet ? packet : 1) * sizeof(long));
    if (buffer) padded = whole(padded, buffer);
    size_t part = buffer && length > buffer ? buffer : padded, cell = part / k;
    char *file = calloc(padded + 1, 1), *nodes[MAX_NODES];
    if (part < padded) memset(file, '0', padded);
    if (fread(file, 1, length, stdin) != length) exit(2);
    char *fragments = calloc(padded / k + 1, k + m);
    for (size_t at = 0; at < padded; at += part) {
        for (int i = 0; i < k; i++) nodes[i] = file + at + i * cell;
        for (int i = k; i < k + m; i++) nodes[i] = aligned_alloc(64, whole(cell, 64));
        if (!encode_cells(technique, k, m, w, packet, nodes, nodes + k, cell)) return 0;
        for (int i = 0; i < k + m; i++) memcpy(fragments + i * (padded / k) + at / k, nodes[i], cell);
        for (int i = k; i < k + m; i++) free(nodes[i]);
    }
    fwrite(fragments, k + m, padded / k, stdout);
    fflush(stdout);
    free(fragments);
    free(file);
    return 1;
}

static int serve(char *line) {
    char *operation = strtok(line, " "), *technique = strtok(0, " "), *word;
    int k = atoi(strtok(0, " ")), m = atoi(strtok(0, " ")), w = atoi(strtok(0, " "));
    int packet = atoi(strtok(0, " ")), length = atoi(strtok(0, " ")), lost[MAX_NODES], count = 0;
    while ((word = strtok(0, " ")) && count < MAX_NODES - 1) lost[count++] = atoi(word);
    lost[count] = -1;
    if (!strcmp(operation, "files")) return count == 1 && serve_file(technique, k, m, w, packet, length, lost[0]);
    int *bits = k + m <= MAX_NODES ? bit_matrix(technique, k, m, w) : 0;
    if (!bits) return 0;
    char *shards[MAX_NODES];
    for (int i = 0; i < k + m; i++) shards[i] = aligned_alloc(64, (size_t)(length + 63) / 64 * 64);
    if (!strcmp(operation, "encode")) {
        read_shards(shards, k, (size_t)length);
        jerasure_bitmatrix_encode(k, m, w, bits, shards, shards + k, length, packet);
        write_shards(shards + k, m, (size_t)length);
    } else {
        read_shards(shards, k + m, (size_t)length);
        if (jerasure_schedule_decode_lazy(k, m, w, bits, lost, shards, shards + k, length, packet, 1)) return 0;
        write_shards(shards, k + m, (size_t)length);
    }
    for (int i = 0; i < k + m; i++) free(shards[i]);
    free(bits);
    return 1;
}

int main(void) {
    static char line[1 << 16];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!serve(line)) {
            fprintf(stderr, "Jerasure refuses: %s\n", line);
            return 1;
        }
    }
}
