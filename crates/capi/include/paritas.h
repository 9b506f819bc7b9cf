/* Paritas: erasure codes, compiled. This file is long because it is the whole interface, each
 * function with its contract.
 *
 * A codec is made from the name of a code (`10+4`, `isal-cauchy:k=6,m=3`, `rdp:k=6`), and encodes,
 * reconstructs and updates shards in the caller's memory. A prepared call is one question of a
 * codec, ready to run: it takes no lock, and allocates nothing for codes as small as 10+4. One call
 * is an exception: after half a megabyte of shards, it plans and compiles, which takes a fraction
 * of a millisecond for 10+4. Shard files are encoded, decoded, verified and repaired by name.
 * Volumes keep objects over disks, hosts and buckets. docs/embedding.md says which call suits which
 * size.
 *
 * An object in memory as 14 shards, of which any 4 may be lost; checks of errors are left out:
 *
 *     paritas_codec *codec;
 *     paritas_codec_new("10+4", NULL, &codec);
 *     size_t bytes = paritas_codec_data_len(codec, object_bytes);
 *     for (int i = 0; i < 14; i++) shards[i] = malloc(bytes);
 *     paritas_object_encode(codec, object, object_bytes, shards);
 *     shards[3] = NULL;
 *     paritas_object_decode(codec, (const uint8_t *const *)shards, object, object_bytes);
 *     paritas_codec_free(codec);
 *
 * Errors. Functions that can fail return a paritas_status; its numbers are the exit codes of the
 * command `paritas`. paritas_last_message() then tells what is wrong, by name and number, until the
 * next call of the same thread. After an error the targets of the call may hold anything, unless
 * the function says otherwise.
 *
 * Pointers. A null pointer where one is needed, targets that overlap, and handles of the wrong kind
 * are refused with PARITAS_ARGUMENTS. A handle that has been freed is recognised where its memory
 * has not been used again; do not rely on it. Memory must be as long as the function says, which no
 * function can check.
 *
 * Handles. A function that makes a handle stores it where its last argument points, or null if it
 * fails. The function of its type that ends in `_free` (for a decoder, paritas_lt_release()) frees
 * it. Nothing else is to be freed: texts, blocks and arrays belong to the handle that was asked, the
 * last message to its thread, and the version to the library.
 *
 * Texts end with a null byte and are UTF-8; paths are whatever the system allows.
 *
 * Threads. There is no state but the handles, and the last message of each thread. All handles may
 * be used by several threads at once; freeing one ends all use of it. A process that was forked may
 * go on with codecs and prepared calls, unless another thread was in the first call with the same
 * codec at that moment; but not with volumes. Do not cancel a thread that is in a
 * call (pthread_cancel): the process would end. The library's own threads take the signal mask of the
 * thread whose call starts them: block signals around the first large call if handlers are to run on
 * your threads alone.
 *
 * Lengths. `bytes` is the length of a shard of a node with data: a multiple of
 * paritas_codec_shard_unit(). In most codes all shards have this length; paritas_codec_shard_len()
 * tells those that differ. */


#ifndef PARITAS_H
#define PARITAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* The version that this header is of; paritas_version() is that of the library. */
#define PARITAS_VERSION_MAJOR 0
#define PARITAS_VERSION_MINOR 1
#define PARITAS_VERSION_PATCH 0

/**
 * The outcome of a call. The numbers are the exit codes of the command `paritas`.
 */
typedef enum {
    /**
     * Done, or everything intact.
     */
    PARITAS_OK = 0,
    /**
     * Damaged, but repairable.
     */
    PARITAS_REPAIRABLE = 1,
    /**
     * Too few shards or blocks are left.
     */
    PARITAS_LOST = 2,
    /**
     * Bad arguments: a spec, a parameter, a pointer, a number of shards or a length.
     */
    PARITAS_ARGUMENTS = 3,
    /**
     * No shards were recognised, or there is no object of this name.
     */
    PARITAS_NOT_RECOGNISED = 4,
    /**
     * The final check of decoded data failed, or a block is not the block that the caller says it
     * is.
     */
    PARITAS_CHECK_FAILED = 5,
    /**
     * Input or output failed.
     */
    PARITAS_IO = 6,
    /**
     * A fault of Paritas.
     */
    PARITAS_INTERNAL = 7,
    /**
     * The system lacks memory, or the volume file allows too little.
     */
    PARITAS_MEMORY = 8,
} paritas_status;

/**
 * How the threads of a call share its work.
 */
typedef enum {
    /**
     * Every thread takes some of the stripes. This is the default, and is also used where the work
     * cannot be shared in another way, for example with one parity shard.
     */
    PARITAS_SPLIT_STRIPE = 0,
    /**
     * Every thread computes some of the shards.
     */
    PARITAS_SPLIT_NODE = 1,
    /**
     * Every thread takes some bytes of every packet, in whole cache lines.
     */
    PARITAS_SPLIT_COLUMNS = 2,
    /**
     * Every thread computes some rows of every shard. Refused for codes over words, which have no
     * rows.
     */
    PARITAS_SPLIT_ROWS = 3,
} paritas_split;

/**
 * A code, and how it is run. May be used by several threads at once.
 */
typedef struct paritas_codec paritas_codec;

/**
 * The names of objects of a volume, in order, with their lengths. May be used by several threads
 * at once, and stays valid when the volume is freed.
 */
typedef struct paritas_listing paritas_listing;

/**
 * All blocks of an object, and the information that a decoder needs about them. May be used by
 * several threads at once.
 */
typedef struct paritas_lt_blocks paritas_lt_blocks;

/**
 * A decoder. Several threads may push blocks into it; they take turns.
 */
typedef struct paritas_lt_decoder paritas_lt_decoder;

/**
 * One question of a codec, ready to run: the shards that are read and the shards that are computed
 * are fixed. May be used by several threads at once, and stays valid when the codec is freed.
 */
typedef struct paritas_prepared paritas_prepared;

/**
 * A schedule: XORs that compute wanted cells from cells at hand. Its cells have numbers: first the
 * inputs, then the temporaries, then the outputs. May be used by several threads at once.
 */
typedef struct paritas_schedule paritas_schedule;

/**
 * A volume: objects, each cut into shards on several nodes. May be used by several threads at
 * once, but only in the process that opened it. A process that was forked from it must open the
 * volume again.
 */
typedef struct paritas_volume paritas_volume;

/**
 * Options of a codec. Zeros stand for the defaults.
 */
typedef struct {
    /**
     * Bytes of a packet; by default 64. It is part of the stored format, except in codes over
     * words, where it only decides what PARITAS_SPLIT_COLUMNS divides.
     */
    size_t packet;
    /**
     * Largest number of threads of a call; by default as many as there are processors. A single
     * call uses another thread for every MiB of shards; in a row of calls that follow each other
     * within 20 microseconds, for every 128 KiB.
     */
    size_t threads;
    /**
     * How threads share a call: a paritas_split.
     */
    int split;
} paritas_options;

/**
 * The result of a verification. In a code of several stages, the numbers of shards count the parts
 * that are stored.
 */
typedef struct {
    /**
     * Shards that are present and intact.
     */
    size_t intact;
    /**
     * Shards that are damaged.
     */
    size_t damaged;
    /**
     * Shards that are missing or cannot be read.
     */
    size_t missing;
    /**
     * Number of further shards that may be lost, whichever they are.
     */
    size_t tolerable;
    /**
     * Bytes of the object; 0 if they are unknown.
     */
    uint64_t object_bytes;
} paritas_verify_report;

/**
 * The shape of a bit matrix: m·w rows, one for each parity packet, and k·w columns, one for each
 * data packet.
 */
typedef struct {
    /**
     * Nodes' worth of data.
     */
    size_t k;
    /**
     * Nodes' worth of parity.
     */
    size_t m;
    /**
     * Packets of a node in one stripe.
     */
    size_t w;
    /**
     * 0: k nodes hold data, and m nodes after them parity. Any other number: each of the k + m
     * nodes holds data, and parity after it, as in X-Code; k·w and m·w must be multiples of k + m.
     */
    int32_t vertical;
} paritas_matrix_shape;

/**
 * Number of losses of some number of shards that a code survives.
 */
typedef struct {
    /**
     * Number of sets of that many shards; UINT64_MAX if there are more.
     */
    uint64_t sets;
    /**
     * Number of sets that were tried: all, or a random sample.
     */
    uint64_t tried;
    /**
     * Number of tried sets after whose loss all data can be computed.
     */
    uint64_t survived;
} paritas_survival;

/**
 * The place of a cell: row `row` of shard `shard`.
 */
typedef struct {
    /**
     * Number of the shard; UINT32_MAX for data that is stored nowhere.
     */
    uint32_t shard;
    /**
     * Row in the shard's strip.
     */
    uint32_t row;
} paritas_place;

/**
 * One operation: cell `target` becomes the XOR of `source_count` cells, whose numbers are
 * `sources[first_source]` and those after it.
 */
typedef struct {
    /**
     * Number of the temporary or output that is written.
     */
    uint32_t target;
    /**
     * Index of its first source in the array of sources.
     */
    uint32_t first_source;
    /**
     * Number of its sources. 0 makes a cell of zeros.
     */
    uint32_t source_count;
} paritas_op;

/**
 * A schedule, as arrays that C reads. They live as long as the schedule.
 */
typedef struct {
    /**
     * The inputs, by number from 0.
     */
    const paritas_place *inputs;
    /**
     * Number of inputs.
     */
    size_t input_count;
    /**
     * Number of temporaries. Their numbers follow those of the inputs.
     */
    size_t temp_count;
    /**
     * The outputs. Their numbers follow those of the temporaries.
     */
    const paritas_place *outputs;
    /**
     * Number of outputs.
     */
    size_t output_count;
    /**
     * The operations in the order in which they run.
     */
    const paritas_op *ops;
    /**
     * Number of operations.
     */
    size_t op_count;
    /**
     * The sources of all operations.
     */
    const uint32_t *sources;
    /**
     * Number of sources, which is also the number of XORs and copies that the schedule costs.
     */
    size_t source_count;
} paritas_schedule_view;

/**
 * Facts about an object of a volume.
 */
typedef struct {
    /**
     * Bytes of the object.
     */
    uint64_t bytes;
    /**
     * The BLAKE3 of its bytes.
     */
    uint8_t digest[32];
} paritas_volume_object;

/**
 * How an object of a volume is protected.
 */
typedef struct {
    /**
     * Shards that no node holds whole.
     */
    size_t missing;
    /**
     * Number of further nodes that may be lost, whichever they are.
     */
    size_t tolerable;
    /**
     * The stage that the object's parity has reached, from 1; 0 if the object is so small that it
     * is kept beside its name.
     */
    size_t stage;
    /**
     * Number of stages of its code.
     */
    size_t stages;
} paritas_volume_verdict;

/**
 * The state of a volume.
 */
typedef struct {
    /**
     * Nodes of the volume.
     */
    size_t nodes;
    /**
     * Nodes that cannot be used now.
     */
    size_t failing;
    /**
     * Number of nodes that may be lost, whichever they are.
     */
    size_t tolerable;
    /**
     * Objects that wait for paritas_volume_repair().
     */
    size_t owed;
    /**
     * Objects that wait for a later stage of their code.
     */
    size_t backlog;
} paritas_volume_state;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a codec for the code named `spec`, such as "10+4". `options` may be null.
 */
paritas_status paritas_codec_new(const char *spec,
                                 const paritas_options *options,
                                 paritas_codec **codec);

/**
 * Frees a codec. Calls prepared with it live on. Null is allowed.
 */
void paritas_codec_free(paritas_codec *codec);

/**
 * Returns the code's spec in its canonical form. It lives as long as the codec.
 */
const char *paritas_codec_spec(const paritas_codec *codec);

/**
 * Returns the number of shards with data, k. These shards come first. In codes whose shards hold
 * both data and parity (xcode), this is the number of all shards.
 */
size_t paritas_codec_data_shards(const paritas_codec *codec);

/**
 * Returns the number of shards without data, m.
 */
size_t paritas_codec_parity_shards(const paritas_codec *codec);

/**
 * Returns the number of shards that may be lost, whichever they are, after all stages of the code.
 */
size_t paritas_codec_tolerance(const paritas_codec *codec);

/**
 * Returns the bytes of a packet.
 */
size_t paritas_codec_packet(const paritas_codec *codec);

/**
 * Returns the unit of a data shard's length, in bytes: every length must be a multiple of it.
 * Memory may have any alignment; shards aligned to 64 bytes are faster.
 */
size_t paritas_codec_shard_unit(const paritas_codec *codec);

/**
 * Returns the bytes of a strip. Shards may be encoded and reconstructed in parts that begin at a
 * multiple of a strip, and end at such a multiple or at the end of the shard.
 */
size_t paritas_codec_strip(const paritas_codec *codec);

/**
 * Returns the bytes of a data shard of an object of `object_bytes` bytes; 0 if no memory holds the
 * shard. In codes whose shards hold both data and parity (xcode), the shard has room for both: the
 * rows with data of all shards hold the object.
 */
size_t paritas_codec_data_len(const paritas_codec *codec, size_t object_bytes);

/**
 * Returns the bytes of shard number `shard` if data shards have `bytes` bytes; 0 if the shard does
 * not exist or the length is not possible.
 */
size_t paritas_codec_shard_len(const paritas_codec *codec, size_t shard, size_t bytes);

/**
 * Computes all parity shards from all data shards. `data` are k pointers and `parity` m; data
 * shards have `bytes` bytes. In a code of several stages (dpg), computes the parity of the first
 * stage; `data` and `parity` are then the shards of that stage, and paritas_reconstruct() computes
 * the others as if they were lost. Codes whose shards have rows of several stages
 * (`interleave=all`) are refused.
 */
paritas_status paritas_encode(const paritas_codec *codec,
                              const uint8_t *const *data,
                              uint8_t *const *parity,
                              size_t bytes);

/**
 * Computes the parity in shards that hold both data and parity (xcode). `shards` are pointers to
 * all shards, whose rows of parity are overwritten. Codes whose shards have rows of several stages
 * (`interleave=all`) are refused.
 */
paritas_status paritas_encode_shards(const paritas_codec *codec,
                                     uint8_t *const *shards,
                                     size_t bytes);

/**
 * Computes lost shards from the others. `shards` are k + m pointers, and `present` has a flag for
 * each of them. A shard that is not present is computed; it is left out if its pointer is null.
 * Returns PARITAS_LOST if too many shards are lost to compute one that is not left out.
 */
paritas_status paritas_reconstruct(const paritas_codec *codec,
                                   uint8_t *const *shards,
                                   const bool *present,
                                   size_t bytes);

/**
 * Recomputes all parity from the data and compares it. `shards` are k + m pointers. Returns
 * PARITAS_CHECK_FAILED if parity differs from what the data gives; paritas_last_message() then
 * tells which shards. It cannot tell which shard is wrong: if all parity differs, the fault may
 * lie in the data. Parity of later stages is compared as well, so paritas_reconstruct() must have
 * computed it.
 */
paritas_status paritas_verify(const paritas_codec *codec,
                              const uint8_t *const *shards,
                              size_t bytes);

/**
 * Updates parity in place after data shard `shard` changed from `old_data` to `new_data`. `parity`
 * are the m parity shards, of all stages: in a code of several, more than paritas_encode() makes.
 */
paritas_status paritas_update(const paritas_codec *codec,
                              size_t shard,
                              const uint8_t *old_data,
                              const uint8_t *new_data,
                              uint8_t *const *parity,
                              size_t bytes);

/**
 * Writes the shards of the file at `file` into the `folder_count` folders of `folders`: shard i
 * into folder i modulo their number. The folders must exist. `spec` names the code. If the folders
 * have shards of that name, also of the same file, the call is refused with PARITAS_ARGUMENTS
 * unless `force` is set; the old shards are kept until the new ones are complete.
 */
paritas_status paritas_file_encode(const char *file,
                                   const char *spec,
                                   const char *const *folders,
                                   size_t folder_count,
                                   bool force);

/**
 * Writes an object to the file `output`, from the shards found in the `path_count` files and
 * folders of `paths`. `object` chooses one by its name or the beginning of its id; it may be null
 * if there is only one. If `output` exists, the call is refused with PARITAS_ARGUMENTS unless
 * `force` is set. The file appears under its name when it is complete and its digest is right.
 */
paritas_status paritas_file_decode(const char *const *paths,
                                   size_t path_count,
                                   const char *object,
                                   const char *output,
                                   bool force);

/**
 * Verifies every byte of an object's shards, given as for paritas_file_decode(). Returns
 * PARITAS_OK if all shards are intact, PARITAS_REPAIRABLE if the object can be repaired,
 * PARITAS_LOST if it cannot, PARITAS_IO if this depends on shards that cannot be read, and
 * PARITAS_CHECK_FAILED if the shards contradict each other. In all of these cases `found` receives
 * the report, unless it is null. Unless all shards are intact, paritas_last_message() tells what
 * is wrong.
 */
paritas_status paritas_file_verify(const char *const *paths,
                                   size_t path_count,
                                   const char *object,
                                   paritas_verify_report *found);

/**
 * Writes the damaged and missing shards of an object anew, into the folder `to`, or where they
 * belong if `to` is null. The object is given as for paritas_file_decode(). `repaired` receives
 * the number of shards that were written, unless it is null. If shards could not be opened, they
 * stay as they are, and PARITAS_IO is returned once all others are whole.
 */
paritas_status paritas_file_repair(const char *const *paths,
                                   size_t path_count,
                                   const char *object,
                                   const char *to,
                                   size_t *repaired);

/**
 * Encode: computes all blocks of an object with the code named `spec`, such as "lt:k=1024,n=2048".
 * The object must have at least one byte.
 */
paritas_status paritas_lt_encode(const char *spec,
                                 const uint8_t *object,
                                 size_t object_bytes,
                                 paritas_lt_blocks **blocks);

/**
 * Returns the number of blocks, n.
 */
size_t paritas_lt_block_count(const paritas_lt_blocks *blocks);

/**
 * Returns the bytes of every block.
 */
size_t paritas_lt_block_bytes(const paritas_lt_blocks *blocks);

/**
 * Returns a block by its number, from 0 to n - 1; null for other numbers. The block lives as long
 * as the set.
 */
const uint8_t *paritas_lt_block(const paritas_lt_blocks *blocks, size_t number);

/**
 * Returns the information that a decoder needs: the code, lengths and checksums. `bytes` receives
 * its length. Keep a copy of it with the blocks; this memory lives as long as the set.
 */
const uint8_t *paritas_lt_info(const paritas_lt_blocks *blocks, size_t *bytes);

/**
 * Frees a set of blocks. Null is allowed.
 */
void paritas_lt_blocks_free(paritas_lt_blocks *blocks);

/**
 * DecInit: makes a decoder from the `info_bytes` bytes that paritas_lt_info() returned.
 */
paritas_status paritas_lt_dec_init(const uint8_t *info,
                                   size_t info_bytes,
                                   paritas_lt_decoder **decoder);

/**
 * DecPush: gives block number `number` to a decoder, which copies it. `ready` receives whether the
 * object can be rebuilt; it may be null. A block that has been pushed before changes nothing. A
 * block whose checksum is wrong changes nothing either; the call then returns
 * PARITAS_CHECK_FAILED.
 */
paritas_status paritas_lt_dec_push(const paritas_lt_decoder *decoder,
                                   size_t number,
                                   const uint8_t *block,
                                   size_t bytes,
                                   bool *ready);

/**
 * Writes the object to `object`. `object_bytes` must be the object's length. Returns PARITAS_LOST
 * if the blocks do not suffice yet.
 */
paritas_status paritas_lt_dec_object(const paritas_lt_decoder *decoder,
                                     uint8_t *object,
                                     size_t object_bytes);

/**
 * Returns the number of different blocks that a decoder has received.
 */
size_t paritas_lt_dec_received(const paritas_lt_decoder *decoder);

/**
 * Release: frees a decoder. Null is allowed.
 */
void paritas_lt_release(paritas_lt_decoder *decoder);

/**
 * Makes a codec for the code of a bit matrix, which need not be MDS. `bits` has a byte of 0 or 1
 * for each bit, row by row, as paritas_matrix() writes them: rows and columns are in the order of
 * nodes and then of their packets. `count` is the number of bytes, m·w times k·w. A matrix with
 * which the loss of a single shard is fatal is refused with PARITAS_ARGUMENTS. `options` may be
 * null. The codec's spec holds the matrix: paritas_codec_new() and the functions for files accept
 * this spec.
 */
paritas_status paritas_codec_of_matrix(const paritas_matrix_shape *shape,
                                       const uint8_t *bits,
                                       size_t count,
                                       const paritas_options *options,
                                       paritas_codec **codec);

/**
 * Makes a codec for the code of a bit matrix that is written as a text, as `paritas codes --help`
 * describes. `options` may be null. In all else like paritas_codec_of_matrix().
 */
paritas_status paritas_codec_of_matrix_text(const char *text,
                                            const paritas_options *options,
                                            paritas_codec **codec);

/**
 * Tries losses of `lost` shards: all sets of shards if there are at most `most`, otherwise `most`
 * random sets, which are the same in every call.
 */
paritas_status paritas_codec_survival(const paritas_codec *codec,
                                      size_t lost,
                                      uint64_t most,
                                      paritas_survival *result);

/**
 * Cuts an object into k data shards and computes the m parity shards. `shards` are k + m pointers;
 * in a code of several stages (dpg), pointers to the shards of the first stage only. Data shards
 * have paritas_codec_data_len(codec, object_bytes) bytes, the last ones padded with zeros;
 * paritas_codec_shard_len() returns the length of the parity shards. Codes whose shards hold both
 * data and parity (xcode) are refused, also by paritas_object_decode().
 */
paritas_status paritas_object_encode(const paritas_codec *codec,
                                     const uint8_t *object,
                                     size_t object_bytes,
                                     uint8_t *const *shards);

/**
 * Joins an object from its shards. `shards` are pointers to all shards of the code; null stands
 * for a lost shard. Lost data is computed directly into `object`; the shards stay unchanged.
 * Returns PARITAS_LOST if too many shards are lost.
 */
paritas_status paritas_object_decode(const paritas_codec *codec,
                                     const uint8_t *const *shards,
                                     uint8_t *object,
                                     size_t object_bytes);

/**
 * Prepares encoding: the sources are the k data shards, the targets the m parity shards.
 */
paritas_status paritas_prepare_encode(const paritas_codec *codec, paritas_prepared **prepared);

/**
 * Prepares the reconstruction of the `lost_count` shards that `lost` numbers from the
 * `present_count` shards that `present` numbers. The sources are the present shards and the
 * targets the lost ones, each in the order given. Returns PARITAS_LOST if the present shards do
 * not suffice.
 */
paritas_status paritas_prepare_reconstruct(const paritas_codec *codec,
                                           const size_t *present,
                                           size_t present_count,
                                           const size_t *lost,
                                           size_t lost_count,
                                           paritas_prepared **prepared);

/**
 * Prepares the update of parity after data shard `shard` changed: the sources are the old and the
 * new shard, the targets the m parity shards, which are changed in place.
 */
paritas_status paritas_prepare_update(const paritas_codec *codec,
                                      size_t shard,
                                      paritas_prepared **prepared);

/**
 * Prepares the update of parity by the difference alone: the only source is the XOR of the old and
 * the new content of data shard `shard`; the targets are the m parity shards, which are changed in
 * place. A store that sends changes to the nodes with parity sends only half of the bytes in this
 * way.
 */
paritas_status paritas_prepare_difference(const paritas_codec *codec,
                                          size_t shard,
                                          paritas_prepared **prepared);

/**
 * Returns the number of shards that a prepared call reads.
 */
size_t paritas_prepared_sources(const paritas_prepared *prepared);

/**
 * Returns the number of shards that a prepared call computes.
 */
size_t paritas_prepared_targets(const paritas_prepared *prepared);

/**
 * Runs a prepared call. Data shards have `bytes` bytes.
 */
paritas_status paritas_run(const paritas_prepared *prepared,
                           const uint8_t *const *sources,
                           uint8_t *const *targets,
                           size_t bytes);

/**
 * Runs a prepared call on groups of shards that lie in one buffer of `bytes` bytes, one group
 * after the other: packets in a ring, or stripes in a file that is mapped. Shard n of a group is
 * that of node n; it has `stride` bytes and begins n * `stride` bytes after the group. For an
 * update, the shards of a group are the sources and then the targets. The buffer must not be read
 * or written by others meanwhile.
 *
 * Returns PARITAS_ARGUMENTS, and leaves the buffer as it is, if it has no whole number of groups
 * or a shard cannot have `stride` bytes.
 */
paritas_status paritas_run_strided(const paritas_prepared *prepared,
                                   uint8_t *buffer,
                                   size_t bytes,
                                   size_t stride);

/**
 * Frees a prepared call. Null is allowed.
 */
void paritas_prepared_free(paritas_prepared *prepared);

/**
 * Plans how the `lost_count` shards that `lost` numbers are computed from all others. If
 * `lost_count` is 0, plans how parity is computed from data. The code must be in the packet
 * layout; other codes are refused with PARITAS_ARGUMENTS.
 */
paritas_status paritas_schedule_new(const paritas_codec *codec,
                                    const size_t *lost,
                                    size_t lost_count,
                                    paritas_schedule **schedule);

/**
 * Stores the arrays of a schedule in `view`.
 */
paritas_status paritas_schedule_read(const paritas_schedule *schedule, paritas_schedule_view *view);

/**
 * Returns a schedule as text, an operation a line. It lives as long as the schedule.
 */
const char *paritas_schedule_text(const paritas_schedule *schedule);

/**
 * Frees a schedule. Null is allowed.
 */
void paritas_schedule_free(paritas_schedule *schedule);

/**
 * Returns the number of rows of a codec's bit matrix: one for each bit of parity.
 */
size_t paritas_matrix_rows(const paritas_codec *codec);

/**
 * Returns the number of columns of a codec's bit matrix: one for each bit of data.
 */
size_t paritas_matrix_columns(const paritas_codec *codec);

/**
 * Writes a codec's bit matrix to `bits`, row by row, a byte of 0 or 1 for each bit. Rows are the
 * parity cells and columns the data cells, both by shard and then by row of the shard. `count` is
 * the number of bytes, paritas_matrix_rows() times paritas_matrix_columns().
 */
paritas_status paritas_matrix(const paritas_codec *codec, uint8_t *bits, size_t count);

/**
 * Returns the message of the last failed call of this thread: a text in UTF-8, empty if no call
 * has failed.
 *
 * Each thread has its own message, which calls of other threads do not change. Call this function
 * on the thread whose call failed, before that thread makes another call: the text stays valid
 * until the next call of the same thread, or until that thread ends.
 */
const char *paritas_last_message(void);

/**
 * Returns the meaning of a status in a few English words, such as "damaged, but repairable". The
 * text stays valid for ever. For a number that is not a status, it is "unknown status".
 */
const char *paritas_status_text(int status);

/**
 * Returns the version of the library, such as "0.1.0".
 */
const char *paritas_version(void);

/**
 * Opens the volume that the volume file `file` describes, as `paritas volume init` writes it, and
 * starts threads for it.
 */
paritas_status paritas_volume_open(const char *file, paritas_volume **volume);

/**
 * Closes a volume. It may be null. Waits at most three seconds for nodes that do not answer. In a
 * process that was forked from the one that opened the volume, does nothing.
 */
void paritas_volume_free(paritas_volume *volume);

/**
 * Stores an object of `bytes` bytes. An object of this name is replaced. When this returns
 * PARITAS_OK, every reader finds the object; `owed`, which may be null, receives whether something
 * is left for paritas_volume_repair().
 */
paritas_status paritas_volume_put(const paritas_volume *volume,
                                  const char *name,
                                  const uint8_t *object,
                                  size_t bytes,
                                  bool *owed);

/**
 * Stores the file at `file` with its mode and time. In all else like paritas_volume_put().
 */
paritas_status paritas_volume_put_file(const paritas_volume *volume,
                                       const char *name,
                                       const char *file,
                                       bool *owed);

/**
 * Finds an object. Returns PARITAS_NOT_RECOGNISED if there is no object of this name.
 */
paritas_status paritas_volume_stat(const paritas_volume *volume,
                                   const char *name,
                                   paritas_volume_object *found);

/**
 * Copies what was noted about an object under `note`, such as `content-type`, to the `bytes` bytes
 * at `text`, with a null byte behind it. `needed`, which may be null, receives the number of bytes
 * that this takes. If there are fewer, returns PARITAS_ARGUMENTS and copies nothing; `text` may be
 * null then. Returns PARITAS_NOT_RECOGNISED if there is no object of this name, or no such note
 * about it.
 */
paritas_status paritas_volume_note(const paritas_volume *volume,
                                   const char *name,
                                   const char *note,
                                   char *text,
                                   size_t bytes,
                                   size_t *needed);

/**
 * Reads `bytes` bytes of an object into `target`, from the byte `start` on. A range beyond the
 * object is refused. If the whole object is read, its digest is checked; if a part is read, each
 * block that is read is checked.
 */
paritas_status paritas_volume_get(const paritas_volume *volume,
                                  const char *name,
                                  uint64_t start,
                                  uint8_t *target,
                                  size_t bytes);

/**
 * Writes an object to the file `output`, which appears under its name when it is complete and its
 * digest is right. An existing file is refused unless `force` is set.
 */
paritas_status paritas_volume_get_file(const paritas_volume *volume,
                                       const char *name,
                                       const char *output,
                                       bool force);

/**
 * Removes an object.
 */
paritas_status paritas_volume_remove(const paritas_volume *volume, const char *name);

/**
 * Lists the objects whose names begin with `prefix`; all objects if it is null or empty.
 */
paritas_status paritas_volume_list(const paritas_volume *volume,
                                   const char *prefix,
                                   paritas_listing **listing);

/**
 * Returns the number of objects of a listing.
 */
size_t paritas_listing_count(const paritas_listing *listing);

/**
 * Returns the name of the object `number` of a listing; null beyond the last one. It lives as long
 * as the listing.
 */
const char *paritas_listing_name(const paritas_listing *listing, size_t number);

/**
 * Returns the length in bytes of the object `number` of a listing; 0 beyond the last one.
 */
uint64_t paritas_listing_bytes(const paritas_listing *listing, size_t number);

/**
 * Frees a listing. It may be null.
 */
void paritas_listing_free(paritas_listing *listing);

/**
 * Looks for the shards of an object on all nodes; with `deep`, reads every block of them. Returns
 * PARITAS_OK if the object is intact, PARITAS_REPAIRABLE if paritas_volume_repair() can restore
 * it, PARITAS_LOST if it cannot, and PARITAS_IO if this depends on nodes that did not answer.
 * Unless the object is intact, paritas_last_message() tells what is wrong. `found` may be null.
 */
paritas_status paritas_volume_verify(const paritas_volume *volume,
                                     const char *name,
                                     bool deep,
                                     paritas_volume_verdict *found);

/**
 * Makes an object whole again; with `deep`, reads every block of it first. `repaired` receives the
 * number of shards that were written; it may be null. Returns PARITAS_REPAIRABLE if something is
 * left for another repair; paritas_last_message() then tells the problems of nodes.
 */
paritas_status paritas_volume_repair(const paritas_volume *volume,
                                     const char *name,
                                     bool deep,
                                     size_t *repaired);

/**
 * Asks all nodes of a volume. Returns PARITAS_OK if all nodes work and no object waits for repair,
 * PARITAS_REPAIRABLE if some nodes fail or objects wait, PARITAS_LOST if there are objects that a
 * repair could not make whole, and PARITAS_IO if more nodes fail than may be lost. A node that has
 * worked since the volume was opened counts as working; to see the current state, open the volume
 * anew. Unless the outcome is PARITAS_OK, paritas_last_message() tells what is wrong. `found` may
 * be null.
 */
paritas_status paritas_volume_status(const paritas_volume *volume, paritas_volume_state *found);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PARITAS_H */
