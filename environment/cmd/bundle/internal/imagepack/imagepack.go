// Package imagepack stores the binary files of CIFAR in about half their size,
// and restores them bit by bit.
//
// Such a file is a sequence of records: labels of one byte each, then an image of
// 3 planes (red, green, blue) of 32 rows of 32 pixels. A pixel is predicted
// from its neighbours in the same plane and in those before it, and the
// difference is written by an arithmetic coder, with probabilities that adapt to
// how wrong the predictions nearby were. All of it is integer arithmetic, so that
// every machine computes the same.
package imagepack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

const (
	side      = 32
	planes    = 3
	imageSize = planes * side * side
	// blockRecords is how many records share their statistics. Blocks are packed
	// and restored in parallel.
	blockRecords = 2000
	// maxLabels bounds what a damaged file can ask for.
	maxLabels = 16
)

// ErrDamaged is wrapped by the errors of [Unpack].
var ErrDamaged = errors.New("the packed images are damaged")

// Pack compresses records of so many labels and an image each. The file must
// hold whole records.
func Pack(file []byte, labels int) ([]byte, error) {
	size := labels + imageSize
	if labels < 0 || labels > maxLabels || len(file)%size != 0 {
		return nil, fmt.Errorf("packing images: %d bytes are no records of %d labels and an image of %d bytes", len(file), labels, imageSize)
	}
	blocks := slices.Collect(slices.Chunk(file, blockRecords*size))
	packed := make([][]byte, len(blocks))
	inParallel(len(blocks), func(i int) {
		c := newEncoder()
		c.records(slices.Clone(blocks[i]), labels)
		packed[i] = c.finish()
	})
	// The head: labels, bytes of the file, then the length of each block.
	out := []byte{byte(labels)}
	out = binary.LittleEndian.AppendUint64(out, uint64(len(file)))
	for _, block := range packed {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(block)))
	}
	return append(out, slices.Concat(packed...)...), nil
}

// Unpack restores what [Pack] was given; size is that file's number of bytes.
// Damage of the head or of lengths is an error; damage of the rest gives a wrong
// file, which only a checksum can tell.
func Unpack(packed []byte, size int64) ([]byte, error) {
	const head = 1 + 8
	if len(packed) < head {
		return nil, fmt.Errorf("%w: %d bytes", ErrDamaged, len(packed))
	}
	labels := int(packed[0])
	record := int64(labels + imageSize)
	if stated := binary.LittleEndian.Uint64(packed[1:]); labels > maxLabels || stated != uint64(size) || size%record != 0 {
		return nil, fmt.Errorf("%w: %d bytes of records with %d labels where %d bytes should be", ErrDamaged, stated, labels, size)
	}
	file := make([]byte, size)
	blocks := slices.Collect(slices.Chunk(file, int(blockRecords*record)))
	lengths, rest := packed[head:], packed[head:]
	if len(rest) < 4*len(blocks) {
		return nil, fmt.Errorf("%w: the lengths of %d blocks are missing", ErrDamaged, len(blocks))
	}
	rest = rest[4*len(blocks):]
	inputs := make([][]byte, len(blocks))
	for i := range inputs {
		length := int64(binary.LittleEndian.Uint32(lengths[4*i:]))
		if length > int64(len(rest)) {
			return nil, fmt.Errorf("%w: block %d of %d ends early", ErrDamaged, i, len(blocks))
		}
		inputs[i], rest = rest[:length], rest[length:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes follow the last block", ErrDamaged, len(rest))
	}
	inParallel(len(blocks), func(i int) { newDecoder(inputs[i]).records(blocks[i], labels) })
	return file, nil
}

// inParallel calls do for 0 to n-1, on all processors.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			do(i)
			<-free
		})
	}
	wg.Wait()
}

// records codes a block: the encoder reads it, the decoder writes it.
func (c *coder) records(block []byte, labels int) {
	var m model
	m.reset()
	for record := range slices.Chunk(block, labels+imageSize) {
		for i := range labels {
			record[i] = c.symbol(&m.labels[i], record[i])
		}
		for p := range planes {
			m.codePlane(c, p, record[labels+p*side*side:][:side*side])
		}
	}
}
