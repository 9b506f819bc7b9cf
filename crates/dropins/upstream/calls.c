/* Counts the calls that a program makes into libisal and libJerasure, whoever made these libraries, by the
 * audit interface of the dynamic linker (rtld-audit(7)):
 *
 *     LD_AUDIT=./calls.so CALLS=counts program
 *
 * Each function of theirs that somebody else binds, by linking or by dlsym, is replaced by a stub, which
 * counts the call and jumps to the function. When the program ends, a line for each function is added to
 * the file: the path of its library, its name, the number of calls. */
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A library that is closed and opened again mostly has another address, and is bound anew. */
#define STUBS 65536
#define STUB_BYTES 32
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

uint64_t calls_counts[STUBS];
uintptr_t calls_targets[STUBS];
extern char calls_stubs[];
static struct { const char *library, *function; } bound[STUBS];
static int used;
static atomic_flag busy = ATOMIC_FLAG_INIT;

__asm__(".text\n.balign " TEXT(STUB_BYTES) "\ncalls_stubs:\n"
        ".set number, 0\n"
        ".rept " TEXT(STUBS) "\n"
        ".balign " TEXT(STUB_BYTES) "\n"
        "lock incq calls_counts+8*number(%rip)\n"
        "jmp *calls_targets+8*number(%rip)\n"
        ".set number, number+1\n"
        ".endr\n");

unsigned la_version(unsigned version) { return version; }

/* The cookie of a library whose calls are counted is its path, else null. */
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    const char *slash = strrchr(map->l_name, '/');
    const char *name = slash ? slash + 1 : map->l_name;
    int counted = !strncmp(name, "libisal", 7) || !strncmp(name, "libJerasure", 11);
    (void)space;
    *cookie = counted ? (uintptr_t)strdup(map->l_name) : 0;
    return counted ? LA_FLG_BINDTO : LA_FLG_BINDFROM;
}

static int stub(const char *library, const char *function, uintptr_t target) {
    for (int at = 0; at < used; at++)
        if (calls_targets[at] == target && !strcmp(bound[at].function, function) && !strcmp(bound[at].library, library))
            return at;
    if (used == STUBS) abort();
    bound[used].library = library;
    bound[used].function = strdup(function);
    calls_targets[used] = target;
    return used++;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name) {
    (void)index, (void)from, (void)flags;
    if (!*to || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return symbol->st_value;
    while (atomic_flag_test_and_set(&busy)) continue;
    int at = stub((const char *)*to, name, symbol->st_value);
    atomic_flag_clear(&busy);
    return (uintptr_t)calls_stubs + (uintptr_t)at * STUB_BYTES;
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("CALLS");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (int at = 0; file && at < used; at++)
        if (calls_counts[at])
            fprintf(file, "%s %s %llu\n", bound[at].library, bound[at].function, (unsigned long long)calls_counts[at]);
    if (file) fclose(file);
}
