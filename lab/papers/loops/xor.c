/* The XOR loops of Zhou's dissertation, sections 3.3.2 and 3.3.4. This file is compiled once for each loop:
 * NAME is the function that it defines, BITS the width of an explicit vector (0: words of 64 bits, whose
 * vectorisation is left to the compiler), and IVDEP says that regions do not overlap. */

#include <stddef.h>

#if BITS == 128
#include <immintrin.h>
typedef __m128i word;
#define XOR(a, b) _mm_xor_si128(a, b)
#elif BITS == 256
#include <immintrin.h>
typedef __m256i word;
#define XOR(a, b) _mm256_xor_si256(a, b)
#else
typedef long word;
#define XOR(a, b) ((a) ^ (b))
#endif

/* r3 = r1 ^ r2; each region has `bytes` bytes. */
void NAME(char *r1, char *r2, char *r3, size_t bytes)
{
    size_t loops = bytes / sizeof(word);
#ifdef IVDEP
#pragma GCC ivdep
#endif
    for (size_t j = 0; j < loops; j++) {
        word *b1 = (word *)(r1 + j * sizeof(word));
        word *b2 = (word *)(r2 + j * sizeof(word));
        word *b3 = (word *)(r3 + j * sizeof(word));
        *b3 = XOR(*b1, *b2);
    }
}
