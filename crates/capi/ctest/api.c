/* Tests of the C interface, one function a promise. The first argument is an empty folder for files; with a second one,
 * loops take every 37th pattern of losses alone, for tools that slow a program down. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { K = 6, M = 3, N = K + M };

static unsigned stride = 1;

static paritas_codec *codec_of(const char *spec) {
    paritas_codec *codec = NULL;
    OK(paritas_codec_new(spec, NULL, &codec));
    return codec;
}

/* Returns the shards of a codec with encoded data. */
static uint8_t **encoded(const paritas_codec *codec, size_t bytes) {
    uint8_t **shards = shards_new(N, bytes);
    for (unsigned i = 0; i < K; i++) fill(shards[i], bytes, 1000 * i);
    OK(paritas_encode(codec, (const uint8_t *const *)shards, shards + K, bytes));
    return shards;
}

static void shapes(void) {
    paritas_codec *codec = codec_of("6+3");
    CHECK(paritas_codec_data_shards(codec) == K && paritas_codec_parity_shards(codec) == M);
    CHECK(paritas_codec_tolerance(codec) == M);
    CHECK(paritas_codec_packet(codec) == 64);
    CHECK(strncmp(paritas_codec_spec(codec), "cauchy:k=6,m=3", 14) == 0);
    size_t unit = paritas_codec_shard_unit(codec), length = paritas_codec_data_len(codec, 6001);
    CHECK(length >= 1001 && length % unit == 0 && length < 1001 + unit);
    CHECK(paritas_codec_strip(codec) == unit * 64);
    CHECK(paritas_codec_shard_len(codec, N - 1, length) == length);
    CHECK(paritas_codec_shard_len(codec, N, length) == 0);
    CHECK(paritas_codec_shard_len(codec, 0, length + 1) == 0);
    CHECK(paritas_codec_data_len(codec, SIZE_MAX) == 0 || paritas_codec_data_len(codec, SIZE_MAX) >= SIZE_MAX / K);
    paritas_codec_free(codec);
    paritas_codec_free(NULL);
    CHECK(paritas_codec_data_shards(NULL) == 0);
    codec = codec_of("reed-solomon:k=6,m=3,w=16");
    CHECK(paritas_codec_shard_unit(codec) == 2 && paritas_codec_shard_len(codec, N - 1, 1000) == 1000);
    CHECK(paritas_codec_shard_len(codec, 0, 1001) == 0 && strstr(paritas_last_message(), "1001") != NULL);
    paritas_codec_free(codec);
    codec = codec_of("10+4");
    CHECK(paritas_codec_shard_unit(codec) == 4 && paritas_codec_shard_len(codec, 13, SIZE_MAX - 3) == 0);
    paritas_codec_free(codec);
    /* Shards with three rows of data and two of parity. */
    codec = codec_of("xcode:n=5");
    CHECK(paritas_codec_data_len(codec, 1000) == 335 && paritas_codec_data_len(codec, 15) == 5);
    paritas_codec_free(codec);
}

/* Wrong arguments are errors with a message that names them. */
static void wrong_arguments(void) {
    paritas_codec *codec = (paritas_codec *)&codec;
    CHECK(paritas_codec_new("6+0", NULL, &codec) == PARITAS_ARGUMENTS && codec == NULL);
    CHECK(paritas_codec_new("no-code:k=1", NULL, &codec) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "no-code") != NULL);
    CHECK(strstr(paritas_status_text(PARITAS_ARGUMENTS), "arguments") != NULL && paritas_status_text(99)[0] != 0);
    CHECK(paritas_codec_new(NULL, NULL, &codec) == PARITAS_ARGUMENTS);
    CHECK(paritas_codec_new("\xff", NULL, &codec) == PARITAS_ARGUMENTS);
    CHECK(paritas_codec_new("6+3", NULL, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_codec_new("lt:k=10,n=30", NULL, &codec) == PARITAS_ARGUMENTS);
    paritas_options options[2] = {{0}};
    CHECK(paritas_codec_new("6+3", (paritas_options *)(void *)((char *)options + 1), &codec) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "options") != NULL);
    options[0].packet = SIZE_MAX;
    CHECK(paritas_codec_new("6+3", options, &codec) == PARITAS_ARGUMENTS);
    options[0] = (paritas_options){.threads = SIZE_MAX};
    OK(paritas_codec_new("6+3", options, &codec));
    paritas_codec_free(codec);

    codec = codec_of("6+3");
    size_t bytes = paritas_codec_shard_unit(codec) * 100;
    uint8_t **shards = encoded(codec, bytes), *kept = shards[2];
    const uint8_t *const *data = (const uint8_t *const *)shards;
    CHECK(paritas_encode(NULL, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "the codec must not be null") != NULL);
    CHECK(paritas_encode(codec, NULL, shards + K, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_encode(codec, data, NULL, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_encode(codec, data, shards + K, bytes - 1) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "multiple") != NULL);
    shards[2] = NULL;
    CHECK(paritas_encode(codec, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "shard 2") != NULL);
    shards[2] = shards[K + 1];
    CHECK(paritas_encode(codec, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "overlap") != NULL);
    shards[2] = kept;
    kept = shards[K];
    shards[K] = shards[K + 1];
    CHECK(paritas_encode(codec, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    shards[K] = kept;
    CHECK(paritas_update(codec, K, shards[0], shards[1], shards + K, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_update(codec, N, shards[0], shards[1], shards + K, bytes) == PARITAS_ARGUMENTS);
    OK(paritas_verify(codec, data, bytes));
    shards[K + 1][bytes - 1] ^= 1;
    CHECK(paritas_verify(codec, data, bytes) == PARITAS_CHECK_FAILED);
    CHECK(strstr(paritas_last_message(), "in shard 7 ") != NULL);
    shards[K + 1][bytes - 1] ^= 1;
    CHECK(paritas_verify(codec, data, bytes - 1) == PARITAS_ARGUMENTS);
    CHECK(paritas_verify(codec, NULL, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_verify(NULL, data, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_object_encode(codec, NULL, bytes, shards) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "object") != NULL);
    CHECK(paritas_object_decode(codec, data, NULL, bytes) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "object") != NULL);

    paritas_prepared *prepared = NULL;
    size_t twice[] = {0, 0}, none[] = {N};
    CHECK(paritas_prepare_reconstruct(codec, twice, 2, none, 0, &prepared) == PARITAS_ARGUMENTS);
    CHECK(paritas_prepare_reconstruct(codec, twice, 1, none, 1, &prepared) == PARITAS_ARGUMENTS);
    CHECK(paritas_prepare_reconstruct(codec, NULL, 2, none, 1, &prepared) == PARITAS_ARGUMENTS);
    /* Counts are checked before anything is read. */
    CHECK(paritas_prepare_reconstruct(codec, twice, SIZE_MAX / 16, none, 0, &prepared) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "has 9 shards; got 1152921504606846975 numbers") != NULL);
    paritas_schedule *schedule = NULL;
    CHECK(paritas_schedule_new(codec, none, N + 1, &schedule) == PARITAS_ARGUMENTS && schedule == NULL);
    CHECK(paritas_run(prepared, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    OK(paritas_prepare_encode(codec, &prepared));
    CHECK(paritas_run(prepared, data, shards + K, bytes - 1) == PARITAS_ARGUMENTS);
    /* A handle of another kind is not taken for one. */
    CHECK(paritas_run((paritas_prepared *)(void *)codec, data, shards + K, bytes) == PARITAS_ARGUMENTS);
    paritas_codec_free((paritas_codec *)(void *)prepared);
    OK(paritas_run(prepared, data, shards + K, bytes));
    paritas_prepared_free(prepared);
    shards_free(shards, N);
    paritas_codec_free(codec);
}

/* Any M shards come back; M + 1 are refused, and shards with null pointers are left out. */
static void losses(void) {
    const char *specs[] = {"6+3", "isal-cauchy:k=6,m=3", "star:k=6,p=7"};
    for (size_t s = 0; s < 3; s++) {
        paritas_codec *codec = codec_of(specs[s]);
        size_t bytes = paritas_codec_shard_unit(codec) * 77;
        uint8_t **shards = encoded(codec, bytes), **work = shards_new(N, bytes);
        for (unsigned lost = 0; lost < 1u << N; lost += stride) {
            int count = __builtin_popcount(lost);
            if (count > M + 1 || (count == M + 1 && lost % 5)) continue;
            bool present[N];
            for (int i = 0; i < N; i++) {
                present[i] = !(lost >> i & 1);
                memcpy(work[i], shards[i], bytes);
                if (!present[i]) memset(work[i], 0xEE, bytes);
            }
            paritas_status status = paritas_reconstruct(codec, work, present, bytes);
            CHECK(status == (count <= M ? PARITAS_OK : PARITAS_LOST));
            for (int i = 0; i < N && count <= M; i++) CHECK(memcmp(work[i], shards[i], bytes) == 0);
        }
        bool present[N] = {false, true, false, true, true, true, true, true, true};
        for (int i = 0; i < N; i++) memcpy(work[i], shards[i], bytes);
        uint8_t *left_out = work[2];
        work[2] = NULL;
        memset(work[0], 0, bytes);
        OK(paritas_reconstruct(codec, work, present, bytes));
        CHECK(memcmp(work[0], shards[0], bytes) == 0);
        work[2] = left_out;
        shards_free(work, N);
        shards_free(shards, N);
        paritas_codec_free(codec);
    }
}

/* Groups of shards in one buffer are encoded and recovered by one call each. */
static void strided(const paritas_prepared *encode, const paritas_prepared *repair, uint8_t **shards, size_t bytes) {
    enum { GROUPS = 3 };
    size_t all = GROUPS * N * bytes;
    uint8_t *buffer = malloc(all), *before = malloc(all);
    for (size_t i = 0; i < GROUPS * N; i++) {
        memcpy(before + i * bytes, shards[i % N], bytes);
        memcpy(buffer + i * bytes, shards[i % N], bytes);
        if (i % N >= K) memset(buffer + i * bytes, 0, bytes);
    }
    OK(paritas_run_strided(encode, buffer, all, bytes));
    CHECK(memcmp(buffer, before, all) == 0);
    for (size_t g = 0; g < GROUPS; g++) {
        memset(buffer + (g * N + 7) * bytes, 0, bytes);
        memset(buffer + g * N * bytes, 0, bytes);
    }
    OK(paritas_run_strided(repair, buffer, all, bytes));
    CHECK(memcmp(buffer, before, all) == 0);

    CHECK(paritas_run_strided(encode, buffer, all - 1, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_run_strided(encode, buffer, all, 0) == PARITAS_ARGUMENTS);
    CHECK(paritas_run_strided(encode, NULL, all, bytes) == PARITAS_ARGUMENTS);
    CHECK(paritas_run_strided(NULL, buffer, all, bytes) == PARITAS_ARGUMENTS);
    CHECK(memcmp(buffer, before, all) == 0);
    OK(paritas_run_strided(encode, NULL, 0, bytes));
    free(buffer);
    free(before);
}

/* Prepared calls do what the plain ones do, also after their codec is gone. */
static void prepared(const char *spec) {
    paritas_codec *codec = codec_of(spec);
    size_t bytes = paritas_codec_shard_unit(codec) * 333;
    uint8_t **shards = encoded(codec, bytes), **work = shards_new(N, bytes);
    const uint8_t *const *data = (const uint8_t *const *)shards;
    paritas_prepared *encode, *repair, *update, *difference;
    size_t present[] = {8, 1, 3, 4, 5, 6}, lost[] = {7, 0};
    OK(paritas_prepare_encode(codec, &encode));
    OK(paritas_prepare_reconstruct(codec, present, 6, lost, 2, &repair));
    OK(paritas_prepare_update(codec, 4, &update));
    OK(paritas_prepare_difference(codec, 4, &difference));
    paritas_codec_free(codec);
    CHECK(paritas_prepared_sources(encode) == K && paritas_prepared_targets(encode) == M);
    CHECK(paritas_prepared_sources(update) == 2 && paritas_prepared_sources(difference) == 1);

    OK(paritas_run(encode, data, work + K, bytes));
    for (int i = K; i < N; i++) CHECK(memcmp(work[i], shards[i], bytes) == 0);
    const uint8_t *have[] = {shards[8], shards[1], shards[3], shards[4], shards[5], shards[6]};
    OK(paritas_run(repair, have, work, bytes));
    CHECK(memcmp(work[0], shards[7], bytes) == 0 && memcmp(work[1], shards[0], bytes) == 0);

    /* The old shard, the new one, and their difference. */
    memcpy(work[0], shards[4], bytes);
    fill(work[1], bytes, 99);
    for (size_t i = 0; i < bytes; i++) work[2][i] = work[0][i] ^ work[1][i];
    OK(paritas_run(update, (const uint8_t *const *)work, work + K, bytes));
    OK(paritas_run(difference, (const uint8_t *const *)(work + 2), shards + K, bytes));
    for (int i = K; i < N; i++) CHECK(memcmp(work[i], shards[i], bytes) == 0);
    memcpy(shards[4], work[1], bytes);
    OK(paritas_run(encode, data, work + K, bytes));
    for (int i = K; i < N; i++) CHECK(memcmp(work[i], shards[i], bytes) == 0);

    strided(encode, repair, shards, bytes);

    paritas_prepared_free(encode);
    paritas_prepared_free(repair);
    paritas_prepared_free(update);
    paritas_prepared_free(difference);
    shards_free(work, N);
    shards_free(shards, N);
}

/* Objects of any length come back from any K shards, into memory of just their length. */
static void objects(void) {
    paritas_codec *codec = codec_of("6+3");
    size_t lengths[] = {0, 1, 7, 600, 12345, 100000};
    for (size_t l = 0; l < 6; l++) {
        size_t length = lengths[l], bytes = paritas_codec_data_len(codec, length);
        uint8_t *object = malloc(length + 1), *again = malloc(length ? length : 1);
        CHECK(object != NULL && again != NULL);
        fill(object, length, 5);
        uint8_t **shards = shards_new(N, bytes);
        OK(paritas_object_encode(codec, object, length, shards));
        for (int first = 0; first + M <= N; first++) {
            const uint8_t *have[N];
            for (int i = 0; i < N; i++) have[i] = i >= first && i < first + M ? NULL : shards[i];
            memset(again, 0xEE, length);
            OK(paritas_object_decode(codec, have, again, length));
            CHECK(memcmp(object, again, length) == 0);
        }
        /* Two shards suffice for an object that does not reach over them. */
        const uint8_t *few[N] = {shards[0], shards[1]};
        paritas_status status = paritas_object_decode(codec, few, again, length);
        CHECK(status == (length <= 2 * bytes ? PARITAS_OK : PARITAS_LOST));
        shards_free(shards, N);
        free(object);
        free(again);
    }
    paritas_codec_free(codec);
    codec = codec_of("xcode:n=5");
    CHECK(paritas_object_encode(codec, NULL, 0, NULL) == PARITAS_ARGUMENTS);
    paritas_codec_free(codec);
    codec = codec_of("dpg:k=6,m=2,m2=4,interleave=all");
    CHECK(paritas_encode_shards(codec, NULL, 0) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "to a later stage") != NULL);
    paritas_codec_free(codec);
}

/* A schedule, run by hand on one bit a cell, computes what the bit matrix says. */
static void schedules(void) {
    paritas_codec *codec = codec_of("6+3");
    size_t rows = paritas_matrix_rows(codec), columns = paritas_matrix_columns(codec), w = columns / K;
    uint8_t *matrix = malloc(rows * columns), *cells = NULL;
    CHECK(matrix != NULL);
    CHECK(paritas_matrix(codec, matrix, rows * columns - 1) == PARITAS_ARGUMENTS);
    OK(paritas_matrix(codec, matrix, rows * columns));
    paritas_schedule *schedule = NULL;
    OK(paritas_schedule_new(codec, NULL, 0, &schedule));
    paritas_schedule_view view;
    OK(paritas_schedule_read(schedule, &view));
    CHECK(view.input_count == columns && view.output_count == rows && strlen(paritas_schedule_text(schedule)) > 100);
    cells = malloc(view.input_count + view.temp_count + view.output_count);
    CHECK(cells != NULL);
    for (size_t one = 0; one < columns; one++) {
        for (size_t i = 0; i < columns; i++)
            cells[i] = view.inputs[i].shard * w + view.inputs[i].row == one;
        for (size_t op = 0; op < view.op_count; op++) {
            uint8_t sum = 0;
            for (size_t s = 0; s < view.ops[op].source_count; s++)
                sum ^= cells[view.sources[view.ops[op].first_source + s]];
            cells[view.ops[op].target] = sum;
        }
        for (size_t o = 0; o < rows; o++) {
            size_t row = (view.outputs[o].shard - K) * w + view.outputs[o].row;
            CHECK(cells[columns + view.temp_count + o] == matrix[row * columns + one]);
        }
    }
    paritas_schedule_free(schedule);
    size_t lost[] = {0, 8}, many[] = {0, 1, 2, 3};
    OK(paritas_schedule_new(codec, lost, 2, &schedule));
    OK(paritas_schedule_read(schedule, &view));
    CHECK(view.output_count == 2 * w);
    paritas_schedule_free(schedule);
    CHECK(paritas_schedule_new(codec, many, 4, &schedule) == PARITAS_LOST && schedule == NULL);
    paritas_codec_free(codec);
    codec = codec_of("isal-cauchy:k=6,m=3");
    CHECK(paritas_schedule_new(codec, NULL, 0, &schedule) == PARITAS_ARGUMENTS);
    paritas_codec_free(codec);
    free(matrix);
    free(cells);
}

static void lt(void) {
    enum { BYTES = 54321 };
    uint8_t *object = malloc(BYTES), *again = malloc(BYTES);
    CHECK(object != NULL && again != NULL);
    fill(object, BYTES, 3);
    paritas_lt_blocks *blocks = NULL;
    paritas_lt_decoder *decoder = NULL;
    CHECK(paritas_lt_encode("6+3", object, BYTES, &blocks) == PARITAS_ARGUMENTS);
    OK(paritas_lt_encode("lt:k=20,n=60", object, BYTES, &blocks));
    size_t info_bytes = 0, bytes = paritas_lt_block_bytes(blocks), count = paritas_lt_block_count(blocks);
    const uint8_t *info = paritas_lt_info(blocks, &info_bytes);
    CHECK(count == 60 && paritas_lt_block(blocks, count) == NULL);
    CHECK(paritas_lt_dec_init(object, 100, &decoder) != PARITAS_OK && decoder == NULL);
    OK(paritas_lt_dec_init(info, info_bytes, &decoder));
    CHECK(paritas_lt_dec_push(decoder, 1, paritas_lt_block(blocks, 0), bytes, NULL) == PARITAS_CHECK_FAILED);
    CHECK(paritas_lt_dec_push(decoder, 0, paritas_lt_block(blocks, 0), bytes - 1, NULL) == PARITAS_ARGUMENTS);
    CHECK(paritas_lt_dec_object(decoder, again, BYTES) == PARITAS_LOST);
    bool ready = false;
    for (size_t i = count; i-- && !ready;) OK(paritas_lt_dec_push(decoder, i, paritas_lt_block(blocks, i), bytes, &ready));
    CHECK(ready && paritas_lt_dec_received(decoder) >= 20);
    paritas_lt_blocks_free(blocks);
    CHECK(paritas_lt_dec_object(decoder, again, BYTES - 1) == PARITAS_ARGUMENTS);
    OK(paritas_lt_dec_object(decoder, again, BYTES));
    CHECK(memcmp(object, again, BYTES) == 0);
    paritas_lt_release(decoder);
    free(object);
    free(again);
}

static void write_file(const char *path, const uint8_t *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
}

static void files(const char *folder) {
    enum { BYTES = 300000 };
    char source[4096], output[4096], shard[4096];
    snprintf(source, sizeof source, "%s/object", folder);
    snprintf(output, sizeof output, "%s/again", folder);
    snprintf(shard, sizeof shard, "%s/object.1of6.paritas", folder);
    uint8_t *object = malloc(2 * BYTES);
    CHECK(object != NULL);
    fill(object, BYTES, 17);
    write_file(source, object, BYTES);
    paritas_verify_report report;
    CHECK(paritas_file_verify(&folder, 1, NULL, &report) == PARITAS_NOT_RECOGNISED);
    CHECK(paritas_file_verify(&folder, 0, NULL, &report) == PARITAS_ARGUMENTS);
    CHECK(paritas_file_encode(output, "4+2", &folder, 1, false) == PARITAS_IO);
    CHECK(paritas_file_encode(source, "4+2", &folder, 0, false) == PARITAS_ARGUMENTS);
    OK(paritas_file_encode(source, "4+2", &folder, 1, false));
    OK(paritas_file_verify(&folder, 1, NULL, &report));
    CHECK(report.intact == 6 && report.tolerable == 2 && report.object_bytes == BYTES);
    CHECK(unlink(shard) == 0);
    CHECK(paritas_file_verify(&folder, 1, "object", &report) == PARITAS_REPAIRABLE && report.missing == 1);
    CHECK(strstr(paritas_last_message(), "object is repairable") != NULL);
    OK(paritas_file_decode(&folder, 1, NULL, output, false));
    CHECK(paritas_file_decode(&folder, 1, NULL, output, false) == PARITAS_ARGUMENTS);
    FILE *file = fopen(output, "rb");
    CHECK(file != NULL && fread(object + BYTES, 1, BYTES, file) == BYTES && fclose(file) == 0);
    CHECK(memcmp(object, object + BYTES, BYTES) == 0);
    size_t repaired = 0;
    OK(paritas_file_repair(&folder, 1, NULL, NULL, &repaired));
    CHECK(repaired == 1);
    OK(paritas_file_verify(&folder, 1, NULL, NULL));
    /* A shard that cannot be opened, because it is a link to itself, is not repaired. */
    CHECK(unlink(shard) == 0 && symlink(shard, shard) == 0);
    CHECK(paritas_file_repair(&folder, 1, NULL, NULL, &repaired) == PARITAS_IO && repaired == 0);
    CHECK(strstr(paritas_last_message(), "could not be opened, and was left unchanged") != NULL);
    CHECK(unlink(shard) == 0);
    OK(paritas_file_repair(&folder, 1, NULL, NULL, &repaired));
    CHECK(repaired == 1);
    for (int i = 0; i < 3; i++) {
        snprintf(shard, sizeof shard, "%s/object.%dof6.paritas", folder, i);
        CHECK(unlink(shard) == 0);
    }
    CHECK(paritas_file_verify(&folder, 1, NULL, &report) == PARITAS_LOST && report.missing == 3);
    CHECK(paritas_file_repair(&folder, 1, NULL, NULL, NULL) == PARITAS_LOST);
    CHECK(paritas_file_decode(&folder, 1, "other", output, true) != PARITAS_OK);
    free(object);
}

/* Returns the parity of a code with options; its shards are those of 6+3. */
static uint8_t **shared(const char *spec, paritas_options options, size_t bytes) {
    paritas_codec *codec = NULL;
    OK(paritas_codec_new(spec, &options, &codec));
    uint8_t **shards = encoded(codec, bytes);
    paritas_codec_free(codec);
    return shards;
}

/* However many threads share the work, and in whatever way, the bytes are the same. */
static void splits(void) {
    static const paritas_split all[] = {PARITAS_SPLIT_STRIPE, PARITAS_SPLIT_NODE, PARITAS_SPLIT_COLUMNS, PARITAS_SPLIT_ROWS};
    static const char *const specs[] = {"6+3", "reed-solomon:k=6,m=3,w=16"};
    enum { PACKET = 2048, BYTES = 20 * 4 * PACKET };
    for (unsigned s = 0; s < 2; s++) {
        uint8_t **one = shared(specs[s], (paritas_options){.packet = PACKET, .threads = 1}, BYTES);
        for (unsigned i = 0; i < 4; i++) {
            paritas_options options = {.packet = PACKET, .threads = 3, .split = (int)all[i]};
            paritas_codec *codec = NULL;
            if (s == 1 && all[i] == PARITAS_SPLIT_ROWS) {
                CHECK(paritas_codec_new(specs[s], &options, &codec) == PARITAS_ARGUMENTS && codec == NULL);
                CHECK(strstr(paritas_last_message(), "no rows") != NULL);
                continue;
            }
            uint8_t **shards = shared(specs[s], options, BYTES);
            for (unsigned n = K; n < N; n++) CHECK(memcmp(one[n], shards[n], BYTES) == 0);
            shards_free(shards, N);
        }
        shards_free(one, N);
    }
    for (int wrong = -1; wrong <= 4; wrong += 5) {
        paritas_options options = {.split = wrong};
        paritas_codec *codec = NULL;
        CHECK(paritas_codec_new("6+3", &options, &codec) == PARITAS_ARGUMENTS && codec == NULL);
        CHECK(strstr(paritas_last_message(), wrong < 0 ? "got -1" : "got 4") != NULL);
    }
}

typedef struct {
    const paritas_codec *codec;
    const paritas_prepared *prepared;
    uint8_t **shards;
    size_t bytes;
    unsigned number;
} share;

/* Encodes and reconstructs with the codec of all threads. */
static void *thread(void *argument) {
    share *it = argument;
    uint8_t **work = shards_new(N, it->bytes);
    for (unsigned round = 0; round < 20; round += stride) {
        OK(paritas_run(it->prepared, (const uint8_t *const *)it->shards, work + K, it->bytes));
        bool present[N];
        for (unsigned i = 0; i < N; i++) {
            present[i] = i != (it->number + round) % N && i != (it->number * 3 + round + 1) % N;
            if (present[i] && i < K) memcpy(work[i], it->shards[i], it->bytes);
        }
        OK(paritas_reconstruct(it->codec, work, present, it->bytes));
        for (unsigned i = 0; i < N; i++) CHECK(memcmp(work[i], it->shards[i], it->bytes) == 0);
        CHECK(paritas_encode(it->codec, NULL, NULL, it->bytes) == PARITAS_ARGUMENTS);
        CHECK(strstr(paritas_last_message(), "null") != NULL);
    }
    shards_free(work, N);
    return NULL;
}

static void threads(void) {
    enum { THREADS = 8 };
    paritas_codec *codec = codec_of("6+3");
    paritas_prepared *call = NULL;
    OK(paritas_prepare_encode(codec, &call));
    size_t bytes = paritas_codec_strip(codec) * 40;
    uint8_t **shards = encoded(codec, bytes);
    pthread_t running[THREADS];
    share parts[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        parts[i] = (share){codec, call, shards, bytes, i};
        CHECK(pthread_create(&running[i], NULL, thread, &parts[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(running[i], NULL) == 0);
    shards_free(shards, N);
    paritas_prepared_free(call);
    paritas_codec_free(codec);
}

#ifndef __SANITIZE_ADDRESS__
static _Atomic bool is_over;

/* A thread that computes until the process is forked often enough. */
static void *busy(void *unused) {
    (void)unused;
    paritas_codec *codec = codec_of("6+3");
    size_t bytes = paritas_codec_strip(codec) << 8;
    uint8_t **shards = encoded(codec, bytes);
    while (!is_over) OK(paritas_encode(codec, (const uint8_t *const *)shards, shards + K, bytes));
    shards_free(shards, N);
    paritas_codec_free(codec);
    return NULL;
}

/* A child process can compute, too. None of its parent's threads exist in it: neither the helpers, nor a
 * thread that was inside a call while the process was forked. */
static void after_fork(void) {
    paritas_codec *codec = codec_of("6+3");
    size_t bytes = paritas_codec_strip(codec) << 11;
    uint8_t **shards = encoded(codec, bytes);
    pthread_t other;
    CHECK(pthread_create(&other, NULL, busy, NULL) == 0);
    for (int round = 0; round < 500; round++) {
        OK(paritas_encode(codec, (const uint8_t *const *)shards, shards + K, bytes));
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            OK(paritas_encode(codec, (const uint8_t *const *)shards, shards + K, bytes));
            _exit(0);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    is_over = true;
    CHECK(pthread_join(other, NULL) == 0);
    shards_free(shards, N);
    paritas_codec_free(codec);
}
#endif

/* A codec from the bits of a known code has its parity; a matrix that is not MDS decodes what can be decoded. */
static void matrices(void) {
    paritas_codec *known = codec_of("cauchy:k=6,m=3"), *own = NULL;
    size_t rows = paritas_matrix_rows(known), columns = paritas_matrix_columns(known), w = rows / M;
    uint8_t *bits = malloc(rows * columns);
    CHECK(bits != NULL);
    OK(paritas_matrix(known, bits, rows * columns));
    paritas_matrix_shape shape = {K, M, w, 0};
    OK(paritas_codec_of_matrix(&shape, bits, rows * columns, NULL, &own));
    CHECK(paritas_codec_tolerance(own) == M && strncmp(paritas_codec_spec(own), "matrix:k=6,m=3,w=", 17) == 0);
    paritas_survival survival;
    OK(paritas_codec_survival(own, M, 1000, &survival));
    CHECK(survival.sets == 84 && survival.tried == 84 && survival.survived == 84);
    OK(paritas_codec_survival(own, M + 1, 10, &survival));
    CHECK(survival.sets == 126 && survival.tried == 10 && survival.survived == 0);
    CHECK(paritas_codec_survival(own, 1, 1, NULL) == PARITAS_ARGUMENTS);
    size_t bytes = 10 * paritas_codec_shard_unit(known);
    uint8_t **first = encoded(known, bytes), **second = encoded(own, bytes);
    for (int i = 0; i < N; i++) CHECK(memcmp(first[i], second[i], bytes) == 0);
    shards_free(first, N);
    shards_free(second, N);
    paritas_codec *named = codec_of(paritas_codec_spec(own));
    CHECK(strcmp(paritas_codec_spec(named), paritas_codec_spec(own)) == 0);
    paritas_codec_free(named);
    paritas_codec_free(own);

    CHECK(paritas_codec_of_matrix(&shape, bits, rows * columns - 1, NULL, &own) == PARITAS_ARGUMENTS && own == NULL);
    CHECK(paritas_codec_of_matrix(&shape, NULL, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    CHECK(paritas_codec_of_matrix(NULL, bits, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    shape.vertical = 1;
    CHECK(paritas_codec_of_matrix(&shape, bits, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "9 nodes") != NULL);
    shape = (paritas_matrix_shape){SIZE_MAX, SIZE_MAX, 2, 0};
    CHECK(paritas_codec_of_matrix(&shape, bits, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    shape = (paritas_matrix_shape){0, 0, 0, 0};
    CHECK(paritas_codec_of_matrix(&shape, NULL, 0, NULL, &own) == PARITAS_ARGUMENTS);
    shape = (paritas_matrix_shape){K, M, w, 0};
    bits[columns + 3] = 2;
    CHECK(paritas_codec_of_matrix(&shape, bits, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "row 1, column 3 is 2") != NULL);
    memset(bits, 0, rows * columns);
    CHECK(paritas_codec_of_matrix(&shape, bits, rows * columns, NULL, &own) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "node 0 alone") != NULL);
    free(bits);
    paritas_codec_free(known);

    OK(paritas_codec_of_matrix_text("k = 2\nm = 2\nw = 1\n11\n11\n", NULL, &own));
    CHECK(paritas_codec_tolerance(own) == 1 && strcmp(paritas_codec_spec(own), "matrix:k=2,m=2,w=1,rows=c.c") == 0);
    OK(paritas_codec_survival(own, 2, 1000, &survival));
    CHECK(survival.sets == 6 && survival.tried == 6 && survival.survived == 5);
    paritas_codec_free(own);
    CHECK(paritas_codec_of_matrix_text("k = 2\nm = 2\nw = 1\n12\n11\n", NULL, &own) == PARITAS_ARGUMENTS);
    CHECK(strstr(paritas_last_message(), "line 4: digit 2") != NULL);
    CHECK(paritas_codec_of_matrix_text(NULL, NULL, &own) == PARITAS_ARGUMENTS);
}

int main(int count, char **arguments) {
    CHECK(count >= 2);
    if (count > 2) stride = 37;
    shapes();
    matrices();
    wrong_arguments();
    losses();
    prepared("6+3");
    prepared("isal-cauchy:k=6,m=3");
    prepared("star:k=6,p=7");
    objects();
    schedules();
    lt();
    files(arguments[1]);
    threads();
    splits();
    /* A tool that follows the child takes what its parent's threads held for lost. The memory of AddressSanitizer
     * may be locked for ever in a child, because another thread asked for some while its parent was forked. */
#ifndef __SANITIZE_ADDRESS__
    if (stride == 1) after_fork();
#endif
    printf("C interface, version %s: all promises hold\n", paritas_version());
    return 0;
}
