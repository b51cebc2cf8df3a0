//go:build cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64))

package environment

/*
#include <limits.h>
#include <stdlib.h> // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void keep_memory(void) {
#ifdef __GLIBC__
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}
*/
import "C"

// keepMemory lets the C library keep the memory that XLA frees for what XLA asks
// for next, instead of giving each large buffer back to the system. A step on
// images allocates hundreds of megabytes; cleared page by page by the system, they
// would take a tenth of its time.
func keepMemory() { C.keep_memory() }
