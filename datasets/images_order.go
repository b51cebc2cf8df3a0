package datasets

import (
	"fmt"
	"math/rand/v2"
)

// HoldOut divides n training examples at random into those to train on and
// `held` others, for choosing settings, or for the mean energy that
// out-of-distribution scores are taken against. Test examples have no part in
// either. The others are the last of a random permutation that depends on seed
// and n alone; train is the rest, both in the order of the permutation. So for
// one seed a smaller held-out part is a part of a larger one.
//
// HoldOut panics if held is not in [0, n].
func HoldOut(n, held int, seed uint64) (train, heldOut []int) {
	if held < 0 || held > n {
		panic(fmt.Sprintf("datasets: HoldOut: cannot hold out %d of %d examples", held, n))
	}
	p := draws(holdOutStream, seed, 0, 0).Perm(n)
	return p[: n-held : n-held], p[n-held:]
}

// Order returns the order in which n examples are used in an epoch (from 0): a
// random permutation of 0, ..., n-1 that depends on nothing but the arguments, so
// that a run resumed in the middle goes on as it would have.
//
// Order panics if n < 0.
func Order(seed uint64, epoch, n int) []int {
	if n < 0 {
		panic(fmt.Sprintf("datasets: Order: n = %d must not be negative", n))
	}
	return draws(orderStream, seed, epoch, 0).Perm(n)
}

// These keep different uses of the same seed apart.
const (
	holdOutStream = 0x686f6c646f7574
	orderStream   = 0x6f72646572
	augmentStream = 0x6175676d656e74
)

// draws returns a generator that depends on nothing but its arguments. For
// given stream, seed and epoch, no two indices share a generator.
func draws(stream, seed uint64, epoch, index int) *rand.Rand {
	run := scramble(scramble(seed) ^ stream)
	era := scramble(run + uint64(epoch))
	return rand.New(rand.NewPCG(era, scramble(era+uint64(index))))
}

// scramble is a bijection of 64-bit numbers under which neighbours become
// unrelated: the output function of the generator SplitMix64 (Steele, Lea &
// Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
func scramble(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
