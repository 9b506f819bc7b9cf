/* Holds the C interface to the language-neutral cases that vectors.py prints: parity, losses that are
 * recovered, and losses that are refused. */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

typedef struct {
    char *spec;
    size_t packet, bytes, data_rows, rows, tail;
    char *lost, *too_many, *parity;
} test_case;

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Fills the data of shard j of a code over words: vectors/README.md gives the rule. */
static void fill_words(const test_case *it, uint8_t *shard, size_t j) {
    const uint64_t c = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < it->bytes; i++) {
        uint64_t y = (256 * i + j + 1) * c;
        shard[i] = (uint8_t)((y ^ y >> 32) * c >> 56);
    }
}

/* Fills the data of shard j: byte i is 73 (i + 1) (j + 1) mod 251, counting bytes of data alone. */
static void fill_data(const test_case *it, uint8_t *shard, size_t j) {
    if (it->packet == 0) {
        fill_words(it, shard, j);
        return;
    }
    size_t strip = it->rows * it->packet, data = it->data_rows ? it->data_rows * it->packet : strip, i = 0;
    for (size_t at = 0; at < it->bytes; at++) {
        if (it->data_rows && at % strip >= data) continue;
        shard[at] = (uint8_t)(73 * (i + 1) % 251 * (j + 1) % 251);
        i++;
    }
}

/* Compares parity with hexadecimal digits: whole shards, or the parity rows of each. */
static void check_parity(const test_case *it, uint8_t **shards, size_t k, size_t n) {
    const char *hex = it->parity;
    size_t strip = it->rows * it->packet, first = it->data_rows * it->packet;
    if (strcmp(hex, "-") == 0) return;
    for (size_t node = it->data_rows ? 0 : k; node < n; node++, hex++) {
        for (size_t at = 0; at < it->bytes; at++) {
            if (it->data_rows && at % strip < first) continue;
            CHECK(shards[node][at] == digit(hex[0]) * 16 + digit(hex[1]));
            hex += 2;
        }
    }
}

/* Loses the nodes of each list in turn, and reconstructs them or is refused. */
static void check_losses(const paritas_codec *codec, const test_case *it, char *lists, uint8_t **shards, size_t n,
                         bool recoverable) {
    bool *present = malloc(n);
    char *rest = lists, *list;
    CHECK(present != NULL);
    while (strcmp(lists, "-") != 0 && (list = strtok_r(rest, ";", &rest))) {
        uint8_t **work = shards_new(n, it->bytes);
        char *node = NULL, *nodes = list;
        memset(present, true, n);
        while ((node = strtok_r(nodes, ",", &nodes))) present[atoi(node)] = false;
        for (size_t i = 0; i < n; i++)
            if (present[i]) memcpy(work[i], shards[i], it->bytes);
        if (recoverable) {
            OK(paritas_reconstruct(codec, work, present, it->bytes));
            for (size_t i = 0; i < n; i++) CHECK(memcmp(work[i], shards[i], it->bytes) == 0);
        } else {
            CHECK(paritas_reconstruct(codec, work, present, it->bytes) == PARITAS_LOST);
        }
        shards_free(work, n);
    }
    free(present);
}

static void check(const test_case *it) {
    paritas_options options = {.packet = it->packet};
    paritas_codec *codec = NULL;
    OK(paritas_codec_new(it->spec, &options, &codec));
    size_t k = paritas_codec_data_shards(codec), n = k + paritas_codec_parity_shards(codec);
    uint8_t **shards = shards_new(n, it->bytes);
    for (size_t j = 0; j < k; j++) fill_data(it, shards[j], j);
    if (it->data_rows) {
        OK(paritas_encode_shards(codec, shards, it->bytes));
    } else {
        OK(paritas_encode(codec, (const uint8_t *const *)shards, shards + k, it->bytes));
    }
    check_parity(it, shards, k, n);
    check_losses(codec, it, it->lost, shards, n, true);
    check_losses(codec, it, it->too_many, shards, n, false);
    shards_free(shards, n);
    paritas_codec_free(codec);
}

int main(void) {
    enum { LONGEST = 1 << 20 };
    char *line = malloc(LONGEST);
    int count = 0;
    CHECK(line != NULL);
    while (fgets(line, LONGEST, stdin)) {
        char *rest = line, *field[9];
        for (int i = 0; i < 9; i++) CHECK((field[i] = strtok_r(rest, " \n", &rest)));
        size_t numbers[5];
        for (int i = 0; i < 5; i++) numbers[i] = strtoul(field[i + 1], NULL, 10);
        test_case it = {field[0],   numbers[0], numbers[1], numbers[2], numbers[3],
                        numbers[4], field[6],   field[7],   field[8]};
        check(&it);
        count++;
    }
    free(line);
    CHECK(count > 100);
    printf("%d cases of vectors\n", count);
    return 0;
}
