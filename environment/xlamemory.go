//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package environment

// The C library keeps the memory that XLA frees for what XLA asks for next,
// instead of giving each large buffer back to the system. A step on images
// allocates hundreds of megabytes; cleared page by page by the system, they would
// take a quarter of its time. All threads share one pool, as pools of single
// threads give memory back whatever they are told; the library decides on that
// before the second thread starts, so this runs when the program is loaded.
//
// C libraries other than GNU's have no such settings, and stay as they are.

/*
#include <limits.h>
#include <stdlib.h> // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>

__attribute__((constructor)) static void keep_memory(void) {
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}
#endif
*/
import "C"
