package imagepack

import "encoding/binary"

// probability that a bit is 1: the mean of two estimates, in units of 1/2^16, of
// which one forgets fast and one slowly.
type probability struct{ fast, slow uint16 }

var even = probability{1 << 15, 1 << 15}

// Each bit moves an estimate by so small a part of its distance.
const (
	fastShift = 4
	slowShift = 7
)

func (p *probability) update(bit byte) {
	if bit == 1 {
		p.fast += (1<<16 - 1 - p.fast) >> fastShift
		p.slow += (1<<16 - 1 - p.slow) >> slowShift
		return
	}
	p.fast -= p.fast >> fastShift
	p.slow -= p.slow >> slowShift
}

// coder is an arithmetic coder for bits, in either direction: it keeps the
// interval [low, high] of what the coming bytes may be, and each bit divides it
// by the bit's probability. Bytes on which low and high agree are settled.
type coder struct {
	low, high uint32
	decoding  bool
	bytes     []byte // written by the encoder, still to be read by the decoder
	window    uint32 // the decoder's position in the interval
}

func newEncoder() *coder { return &coder{high: 1<<32 - 1} }

func newDecoder(packed []byte) *coder {
	c := &coder{high: 1<<32 - 1, decoding: true, bytes: packed}
	for range 4 {
		c.window = c.window<<8 | c.next()
	}
	return c
}

// next reads a byte; beyond the end there are zeros.
func (c *coder) next() uint32 {
	if len(c.bytes) == 0 {
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return uint32(b)
}

// finish returns what the encoder wrote.
func (c *coder) finish() []byte {
	return binary.BigEndian.AppendUint32(c.bytes, c.high)
}

// bit writes the bit, or reads one and returns it.
func (c *coder) bit(p *probability, bit byte) byte {
	// high is above low here, as their first bytes differ, and one is below 2^16:
	// middle is below high, so that both parts have a value.
	one := max(1, (uint64(p.fast)+uint64(p.slow))/2)
	middle := c.low + uint32(uint64(c.high-c.low)*one>>16)
	if c.decoding {
		bit = 0
		if c.window <= middle {
			bit = 1
		}
	}
	if bit == 1 {
		c.high = middle
	} else {
		c.low = middle + 1
	}
	p.update(bit)
	for (c.low^c.high)>>24 == 0 {
		if c.decoding {
			c.window = c.window<<8 | c.next()
		} else {
			c.bytes = append(c.bytes, byte(c.high>>24))
		}
		c.low <<= 8
		c.high = c.high<<8 | 0xff
	}
	return bit
}

// symbol writes the symbol, or reads one and returns it.
func (c *coder) symbol(t *tree, symbol byte) byte {
	node := 1
	for i := 7; i >= 0; i-- {
		node = node<<1 | int(c.bit(&t[node], symbol>>i&1))
	}
	return byte(node)
}
