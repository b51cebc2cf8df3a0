// Package mt19937 reproduces the part of NumPy's legacy random generator
// (numpy.random.RandomState) that splits of the UCI sets were drawn with:
// seeding by an integer, and random permutations.
//
// The generator is the Mersenne Twister of Matsumoto & Nishimura, "Mersenne
// Twister: a 623-dimensionally equidistributed uniform pseudo-random number
// generator", ACM TOMACS 8(1), 1998. It is not fit for anything secret.
package mt19937

import "math/bits"

const (
	size  = 624        // words of state
	shift = 397        // the recurrence's middle offset
	twist = 0x9908b0df // the recurrence's matrix
)

// Source is a 32-bit Mersenne Twister. Use New.
type Source struct {
	state [size]uint32
	next  int // the first word of state not yet handed out
}

// New seeds a source as numpy.random.RandomState(seed) does for an integer seed.
func New(seed uint32) *Source {
	s := &Source{next: size}
	s.state[0] = seed
	for i := uint32(1); i < size; i++ {
		prev := s.state[i-1]
		s.state[i] = 1812433253*(prev^prev>>30) + i
	}
	return s
}

// Uint32 returns the next 32 random bits.
func (s *Source) Uint32() uint32 {
	if s.next == size {
		s.refill()
	}
	y := s.state[s.next]
	s.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// refill replaces all words of the state by the next ones of the recurrence.
func (s *Source) refill() {
	for i := range s.state {
		y := s.state[i]&0x80000000 | s.state[(i+1)%size]&0x7fffffff
		word := s.state[(i+shift)%size] ^ y>>1
		if y&1 == 1 {
			word ^= twist
		}
		s.state[i] = word
	}
	s.next = 0
}

// upTo returns a uniform integer in [0, limit]: random words are cut down to the
// bits of limit, and drawn again until one fits. NumPy does the same, so the
// number of words consumed agrees too.
func (s *Source) upTo(limit uint32) uint32 {
	if limit == 0 {
		return 0
	}
	mask := uint32(1)<<bits.Len32(limit) - 1
	for {
		if v := s.Uint32() & mask; v <= limit {
			return v
		}
	}
}

// Perm returns a random permutation of 0, ..., n-1, equal to
// numpy.random.RandomState.permutation(n). It panics if n is negative or does
// not fit 32 bits.
func (s *Source) Perm(n int) []int {
	if n < 0 || uint64(n) > 1<<32-1 {
		panic("mt19937: Perm: n must be in [0, 2^32)")
	}
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := s.upTo(uint32(i))
		p[i], p[j] = p[j], p[i]
	}
	return p
}
