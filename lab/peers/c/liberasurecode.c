/* Measures liberasurecode with a backend of its own: the variant names rs_vand (the default) or flat_xor_hd:HD, where HD
 * is the Hamming distance. Its interface copies the data into fragments that it allocates, and computes a header for each,
 * so this is part of what is measured; giving the memory back is too. */
#include <liberasurecode/erasurecode.h>

#include "peer.h"

static struct peer p;
static int library;
/* All data, as the library takes it, and the fragments of one encoding, without the lost ones. */
static char *whole, *left[MAX];
static uint64_t fragment;

/* Encodes, and gives everything back. */
static void encode(void) {
    char **data, **parity;
    uint64_t length;
    if (liberasurecode_encode(library, whole, p.k * p.bytes, &data, &parity, &length)) exit(2);
    liberasurecode_encode_cleanup(library, data, parity);
}

/* Encodes, keeps the fragments that are not lost, and copies the parity to its shards. */
static void encode_for_check(void) {
    char **data, **parity;
    if (liberasurecode_encode(library, whole, p.k * p.bytes, &data, &parity, &fragment)) exit(2);
    size_t header = fragment - p.bytes;
    for (int i = p.lost; i < p.k + p.m; i++) {
        char *from = i < p.k ? data[i] : parity[i - p.k];
        left[i - p.lost] = memcpy(aligned_alloc(64, (fragment + 63) / 64 * 64), from, fragment);
        if (i >= p.k) memcpy(p.shards[i], from + header, p.bytes);
    }
    liberasurecode_encode_cleanup(library, data, parity);
}

static void decode_into(unsigned char *to) {
    char *made;
    uint64_t length;
    if (liberasurecode_decode(library, left, p.k + p.m - p.lost, fragment, 0, &made, &length)) exit(2);
    if (length != p.k * p.bytes) exit(2);
    if (to) memcpy(to, made, length);
    liberasurecode_decode_cleanup(library, made);
}

static void decode(void) { decode_into(0); }

static void decode_for_check(void) { decode_into((unsigned char *)whole); }

/* Lets the shards of data follow each other in one piece of memory. */
static void join(void) {
    whole = aligned_alloc(PAGE, (p.k * p.bytes + PAGE) / PAGE * PAGE);
    for (int i = 0; i < p.k; i++) {
        memcpy(whole + i * p.bytes, p.shards[i], p.bytes);
        free(p.memory[i]);
        p.memory[i] = 0;
        p.shards[i] = (unsigned char *)whole + i * p.bytes;
    }
}

int main(int argc, char **argv) {
    p = peer_start(argv);
    const char *backend = argc > 6 ? argv[6] : "rs_vand";
    struct ec_args args = {.k = p.k, .m = p.m, .w = 16, .hd = p.m + 1, .ct = CHKSUM_NONE};
    int is_flat = !strncmp(backend, "flat_xor_hd:", 12);
    if (is_flat) {
        args.w = 32;
        args.hd = atoi(backend + 12);
        /* A code of Hamming distance HD survives HD - 1 losses. */
        p.lost = args.hd - 1;
    }
    library = liberasurecode_instance_create(is_flat ? EC_BACKEND_FLAT_XOR_HD : EC_BACKEND_LIBERASURECODE_RS_VAND, &args);
    if (library <= 0) exit(3);
    /* The data must need no padding. */
    p.bytes = p.bytes / 64 * 64;
    if (!p.bytes || liberasurecode_get_aligned_data_size(library, p.k * p.bytes) != (int)(p.k * p.bytes)) exit(3);
    printf("bytes %zu\n", p.bytes);
    join();
    peer_check(&p, encode_for_check, decode_for_check);
    peer_serve(p.decode ? decode : encode);
}
