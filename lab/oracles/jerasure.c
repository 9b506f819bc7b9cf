/* Jerasure as an oracle: encodes and decodes what it is given on standard input.
 *
 * A request is a line
 *
 *     encode TECHNIQUE K M W PACKET LENGTH
 *     decode TECHNIQUE K M W PACKET LENGTH LOST...
 *
 * followed by shards of LENGTH bytes: K data shards to encode, all K + M to decode, those of the nodes
 * LOST with anything in them. The answer is bytes too: the M parity shards, or all K + M. A request that
 * Jerasure refuses ends the program with a message on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerasure.h>
#include <jerasure/cauchy.h>
#include <jerasure/liberation.h>

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

static int serve(char *line) {
    char *operation = strtok(line, " "), *technique = strtok(0, " "), *word;
    int k = atoi(strtok(0, " ")), m = atoi(strtok(0, " ")), w = atoi(strtok(0, " "));
    int packet = atoi(strtok(0, " ")), length = atoi(strtok(0, " ")), lost[MAX_NODES], count = 0;
    while ((word = strtok(0, " ")) && count < MAX_NODES - 1) lost[count++] = atoi(word);
    lost[count] = -1;
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
