/* The protocol of an oracle, on standard input and output.
 *
 *     encode FAMILY K M W LENGTH              and k shards  ->  m shards
 *     decode FAMILY K M W LENGTH I,J,…        and k + m shards, the lost ones zero  ->  k + m shards
 *
 * A request is a line, followed by shards of LENGTH bytes each, one after the other. I,J,… are the numbers of the lost
 * shards, at most m. A request that the oracle cannot answer ends it with a message and exit code 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 256 };

struct request {
    char family[32];
    int encodes, k, m, w, lost, erasures[MAX + 1]; /* ended by -1 */
    size_t length;
    unsigned char *shards[MAX];
};

static void refuse(const char *why) {
    fprintf(stderr, "oracle: %s\n", why);
    exit(1);
}

static void read_erasures(struct request *r, char *list) {
    r->lost = 0;
    for (char *word = strtok(list, ","); word && r->lost < MAX; word = strtok(NULL, ","))
        r->erasures[r->lost++] = atoi(word);
    r->erasures[r->lost] = -1;
}

/* Reads a request; returns 0 if there is none. Shards are aligned to 64 bytes, which is enough for all libraries. */
static int next_request(struct request *r) {
    char line[4096], verb[16], list[4096] = "";
    if (!fgets(line, sizeof line, stdin)) return 0;
    if (sscanf(line, "%15s %31s %d %d %d %zu %4095s", verb, r->family, &r->k, &r->m, &r->w, &r->length, list) < 6)
        refuse("a request must be VERB FAMILY K M W LENGTH");
    if (r->k < 1 || r->m < 1 || r->k + r->m > MAX) refuse("k + m must be from 2 to 256");
    r->encodes = !strcmp(verb, "encode");
    read_erasures(r, list);
    int given = r->encodes ? r->k : r->k + r->m;
    for (int i = 0; i < r->k + r->m; i++) {
        if (posix_memalign((void **)&r->shards[i], 64, r->length + 64)) refuse("no memory");
        if (i < given && fread(r->shards[i], 1, r->length, stdin) != r->length) refuse("shards are missing");
    }
    return 1;
}

static void reply(struct request *r) {
    for (int i = 0; i < r->k + r->m; i++) {
        if (i >= r->k || !r->encodes) fwrite(r->shards[i], 1, r->length, stdout);
        free(r->shards[i]);
    }
    fflush(stdout);
}
