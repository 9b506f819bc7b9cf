/* Tests of volumes through the C interface, one function a promise. The argument is a folder with a volume file,
 * `volume.toml`, of a 4+2 code over the folders `disk0` to `disk6` beside it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { BYTES = 300000, SMALL = 100, DISKS = 7 };

static const char *folder;
static uint8_t object[BYTES], again[BYTES];

/* Returns a path in the folder of the test. It lives until the call after the next one. */
static const char *in_folder(const char *name) {
    static char paths[2][4096];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static void objects(paritas_volume *volume) {
    bool owed = true;
    paritas_volume_object found;
    OK(paritas_volume_put(volume, "a/large", object, BYTES, &owed));
    CHECK(!owed);
    OK(paritas_volume_put(volume, "a/small", object, SMALL, NULL));
    OK(paritas_volume_put(volume, "empty", NULL, 0, NULL));
    OK(paritas_volume_get(volume, "a/large", 0, again, BYTES));
    CHECK(memcmp(object, again, BYTES) == 0);
    memset(again, 0, BYTES);
    OK(paritas_volume_get(volume, "a/large", 1234, again, 100001));
    CHECK(memcmp(object + 1234, again, 100001) == 0 && again[100001] == 0);
    OK(paritas_volume_get(volume, "a/small", 0, again, SMALL));
    CHECK(memcmp(object, again, SMALL) == 0);
    OK(paritas_volume_get(volume, "empty", 0, NULL, 0));
    OK(paritas_volume_stat(volume, "a/large", &found));
    CHECK(found.bytes == BYTES);
    /* An object of the same name is replaced. */
    OK(paritas_volume_put(volume, "a/large", object + 1, BYTES - 1, NULL));
    OK(paritas_volume_get(volume, "a/large", 0, again, BYTES - 1));
    CHECK(memcmp(object + 1, again, BYTES - 1) == 0);
}

/* The script that runs the tests has stored `noted`. */
static void notes(paritas_volume *volume) {
    char text[16] = "unchanged";
    size_t needed = 0;
    CHECK(paritas_volume_note(volume, "noted", "content-type", NULL, 0, &needed) == PARITAS_ARGUMENTS && needed == 11);
    CHECK(paritas_volume_note(volume, "noted", "content-type", text, 10, NULL) == PARITAS_ARGUMENTS);
    CHECK(strcmp(text, "unchanged") == 0);
    OK(paritas_volume_note(volume, "noted", "content-type", text, 11, NULL));
    CHECK(strcmp(text, "text/plain") == 0);
    CHECK(paritas_volume_note(volume, "noted", "etag", text, sizeof text, NULL) == PARITAS_NOT_RECOGNISED);
    CHECK(paritas_volume_note(volume, "none", "etag", text, sizeof text, NULL) == PARITAS_NOT_RECOGNISED);
    CHECK(paritas_volume_note(volume, "noted", NULL, text, sizeof text, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_note(volume, "noted", "content-type", NULL, 11, NULL) == PARITAS_ARGUMENTS);
    OK(paritas_volume_remove(volume, "noted"));
}

static void files(paritas_volume *volume) {
    paritas_volume_object of_memory, of_file;
    OK(paritas_volume_put(volume, "memory", object, BYTES, NULL));
    OK(paritas_volume_get_file(volume, "memory", in_folder("out"), false));
    CHECK(paritas_volume_get_file(volume, "memory", in_folder("out"), false) == PARITAS_ARGUMENTS);
    OK(paritas_volume_get_file(volume, "memory", in_folder("out"), true));
    OK(paritas_volume_put_file(volume, "file", in_folder("out"), NULL));
    OK(paritas_volume_stat(volume, "memory", &of_memory));
    OK(paritas_volume_stat(volume, "file", &of_file));
    CHECK(of_file.bytes == BYTES && memcmp(of_file.digest, of_memory.digest, sizeof of_file.digest) == 0);
    CHECK(paritas_volume_put_file(volume, "file", in_folder("none"), NULL) == PARITAS_IO);
    CHECK(strstr(paritas_last_message(), "none") != NULL);
    CHECK(paritas_volume_put_file(volume, "file", in_folder("."), NULL) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), in_folder(".")) != NULL);
    CHECK(strstr(paritas_last_message(), "is a folder") != NULL);
}

static void listings(paritas_volume *volume) {
    paritas_listing *listing = NULL;
    OK(paritas_volume_list(volume, "a/", &listing));
    CHECK(paritas_listing_count(listing) == 2);
    CHECK(strcmp(paritas_listing_name(listing, 0), "a/large") == 0 && paritas_listing_bytes(listing, 0) == BYTES - 1);
    CHECK(strcmp(paritas_listing_name(listing, 1), "a/small") == 0 && paritas_listing_bytes(listing, 1) == SMALL);
    CHECK(paritas_listing_name(listing, 2) == NULL && paritas_listing_bytes(listing, 2) == 0);
    CHECK(paritas_listing_count((paritas_listing *)(void *)volume) == 0);
    paritas_listing_free(listing);
    OK(paritas_volume_remove(volume, "a/small"));
    OK(paritas_volume_list(volume, NULL, &listing));
    CHECK(paritas_listing_count(listing) == 4);
    paritas_listing_free(listing);
    paritas_listing_free(NULL);
    CHECK(paritas_volume_stat(volume, "a/small", NULL) == PARITAS_NOT_RECOGNISED);
    CHECK(strstr(paritas_last_message(), "a/small") != NULL);
}

static void wrong_arguments(paritas_volume *volume) {
    paritas_volume *none = volume;
    paritas_listing *listing = (paritas_listing *)&listing;
    CHECK(paritas_volume_open(in_folder("none.toml"), &none) == PARITAS_IO && none == NULL);
    CHECK(paritas_volume_open(in_folder("out"), &none) == PARITAS_NOT_RECOGNISED && none == NULL);
    CHECK(paritas_volume_open(NULL, &none) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_open(in_folder("volume.toml"), NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_put(NULL, "x", object, 1, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_put(volume, NULL, object, 1, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_put(volume, "../x", object, 1, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_put(volume, "x", NULL, 1, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_get(volume, "memory", 1, again, BYTES) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "300000") != NULL);
    CHECK(paritas_volume_get(volume, "memory", UINT64_MAX, again, 1) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_get(volume, "memory", 0, NULL, 1) == PARITAS_ARGUMENTS);
    CHECK(paritas_volume_get(volume, "absent", 0, again, 1) == PARITAS_NOT_RECOGNISED);
    CHECK(paritas_volume_remove(volume, "absent") == PARITAS_NOT_RECOGNISED);
    CHECK(paritas_volume_list(NULL, "", &listing) == PARITAS_ARGUMENTS && listing == NULL);
    CHECK(paritas_listing_count(NULL) == 0 && paritas_listing_name(NULL, 0) == NULL);
    CHECK(paritas_volume_verify(volume, "absent", false, NULL) == PARITAS_NOT_RECOGNISED);
    paritas_volume_free(NULL);
}

static int removed;

static int remove_shard(const char *path, const struct stat *status, int kind, struct FTW *at) {
    (void)status, (void)at;
    if (kind == FTW_F && strstr(path, "/objects/") && strstr(path, "victim")) {
        CHECK(unlink(path) == 0);
        removed++;
    }
    return 0;
}

/* Removes the shards of `victim` from the first disks that have one. */
static void lose(int count) {
    char disk[16];
    removed = 0;
    for (int i = 0; i < DISKS && removed < count; i++) {
        snprintf(disk, sizeof disk, "disk%d", i);
        CHECK(nftw(in_folder(disk), remove_shard, 8, FTW_PHYS) == 0);
    }
    CHECK(removed == count);
}

static void repairs(paritas_volume *volume) {
    paritas_volume_verdict verdict;
    size_t repaired = 0;
    OK(paritas_volume_put(volume, "victim", object, BYTES, NULL));
    OK(paritas_volume_verify(volume, "victim", true, &verdict));
    CHECK(verdict.missing == 0 && verdict.tolerable == 2 && verdict.stage == 1 && verdict.stages == 1);
    lose(2);
    CHECK(paritas_volume_verify(volume, "victim", false, &verdict) == PARITAS_REPAIRABLE);
    CHECK(verdict.missing == 2 && verdict.tolerable == 0 && strstr(paritas_last_message(), "victim") != NULL);
    OK(paritas_volume_get(volume, "victim", 0, again, BYTES));
    CHECK(memcmp(object, again, BYTES) == 0);
    OK(paritas_volume_repair(volume, "victim", false, &repaired));
    CHECK(repaired == 2);
    OK(paritas_volume_verify(volume, "victim", true, NULL));
    lose(3);
    CHECK(paritas_volume_verify(volume, "victim", false, &verdict) == PARITAS_LOST && verdict.missing == 3);
    CHECK(paritas_volume_get(volume, "victim", 0, again, BYTES) == PARITAS_LOST);
    CHECK(paritas_volume_repair(volume, "victim", false, NULL) == PARITAS_LOST);
    OK(paritas_volume_remove(volume, "victim"));
}

static void nodes(paritas_volume *volume) {
    paritas_volume *other = NULL;
    paritas_volume_state state;
    OK(paritas_volume_status(volume, &state));
    CHECK(state.nodes == DISKS && state.failing == 0 && state.tolerable == 2 && state.owed == 0 && state.backlog == 0);
    CHECK(rename(in_folder("disk0"), in_folder("away")) == 0);
    OK(paritas_volume_open(in_folder("volume.toml"), &other));
    CHECK(paritas_volume_status(other, &state) == PARITAS_REPAIRABLE && state.failing == 1);
    CHECK(strstr(paritas_last_message(), "disk0") != NULL);
    OK(paritas_volume_get(other, "memory", 0, again, BYTES));
    CHECK(memcmp(object, again, BYTES) == 0);
    paritas_volume_free(other);
    CHECK(rename(in_folder("away"), in_folder("disk0")) == 0);
    OK(paritas_volume_status(volume, NULL));
}

static void *thread(void *volume) {
    char name[32];
    uint8_t *mine = malloc(BYTES);
    CHECK(mine != NULL);
    snprintf(name, sizeof name, "thread/%lx", (unsigned long)pthread_self());
    for (unsigned round = 0; round < 3; round++) {
        OK(paritas_volume_put(volume, name, object + round, BYTES - round, NULL));
        OK(paritas_volume_get(volume, name, 0, mine, BYTES - round));
        CHECK(memcmp(object + round, mine, BYTES - round) == 0);
        OK(paritas_volume_get(volume, "memory", 7, mine, 5000));
        CHECK(memcmp(object + 7, mine, 5000) == 0);
    }
    OK(paritas_volume_remove(volume, name));
    free(mine);
    return NULL;
}

static void threads(paritas_volume *volume) {
    enum { THREADS = 8 };
    pthread_t running[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&running[i], NULL, thread, volume) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(running[i], NULL) == 0);
}

/* Whether a file on `disk0` hangs when it is read, as a disk does that is failing. */
static atomic_bool disk0_hangs;
static atomic_bool has_hung;

/* Stands before the function of the system, which the library calls. */
ssize_t read(int file, void *bytes, size_t count) {
    ssize_t (*next)(int, void *, size_t);
    char link[64], path[4096];
    *(void **)&next = dlsym(RTLD_NEXT, "read");
    if (disk0_hangs) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        while (strstr(path, "/disk0/objects/") != NULL) {
            has_hung = true;
            pause();
        }
    }
    return next(file, bytes, count);
}

/* A volume is closed although a node does not answer. */
static void closing(void) {
    paritas_volume *volume = NULL;
    char name[16];
    OK(paritas_volume_open(in_folder("volume.toml"), &volume));
    for (int i = 0; i < 2 * DISKS; i++) {
        snprintf(name, sizeof name, "closing/%d", i);
        OK(paritas_volume_put(volume, name, object, BYTES, NULL));
    }
    disk0_hangs = true;
    alarm(600);
    for (int i = 0; i < 2 * DISKS; i++) {
        snprintf(name, sizeof name, "closing/%d", i);
        OK(paritas_volume_get(volume, name, 0, again, BYTES));
        CHECK(memcmp(object, again, BYTES) == 0);
    }
    CHECK(has_hung);
    alarm(60);
    paritas_volume_free(volume);
    alarm(0);
    disk0_hangs = false;
}

/* A child process is refused, and may open the volume again. */
static void after_fork(paritas_volume *volume) {
    pid_t child = fork();
    if (child == 0) {
        paritas_volume *own = NULL;
        alarm(60);
        CHECK(paritas_volume_get(volume, "memory", 0, again, BYTES) == PARITAS_ARGUMENTS);
        CHECK(strstr(paritas_last_message(), "fork") != NULL);
        paritas_volume_free(volume);
        OK(paritas_volume_open(in_folder("volume.toml"), &own));
        OK(paritas_volume_get(own, "memory", 0, again, BYTES));
        paritas_volume_free(own);
        _exit(0);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    folder = arguments[1];
    fill(object, BYTES, 23);
    paritas_volume *volume = NULL;
    OK(paritas_volume_open(in_folder("volume.toml"), &volume));
    notes(volume);
    objects(volume);
    files(volume);
    listings(volume);
    wrong_arguments(volume);
    repairs(volume);
    nodes(volume);
    threads(volume);
    if (count == 2) after_fork(volume);
    paritas_volume_free(volume);
    CHECK(paritas_volume_stat(NULL, "memory", NULL) == PARITAS_ARGUMENTS);
    closing();
    printf("Volumes in C: all promises hold\n");
    return 0;
}
