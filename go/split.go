package paritas

import (
	"io"
	"unsafe"
)

const line = 64 // bytes of a cache line

// AllocAligned returns memory for shards of each bytes, in whole cache lines that begin at multiples
// of 64.
func AllocAligned(shards, each int) [][]byte {
	each = max(each, 0)
	stride := (each + line - 1) / line * line
	memory := make([]byte, stride*shards+line)
	start := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % line)
	made := make([][]byte, shards)
	for number := range made {
		from := start + number*stride
		made[number] = memory[from : from+each : from+stride]
	}
	return made
}

func (e *encoder) AllocAligned(each int) [][]byte { return AllocAligned(e.TotalShards(), each) }

func (e *encoder) Split(data []byte) ([][]byte, error) {
	if len(data) == 0 {
		return nil, ErrShortData
	}
	each := e.lengthFor(int64(len(data)))
	size := int(each)
	// Bytes beyond the data are padding, and then parity.
	have := len(data)
	data = data[:min(cap(data), size*e.TotalShards())]
	clear(data[have:])
	whole := len(data) / size
	shards := make([][]byte, 0, e.TotalShards())
	for number := range whole {
		shards = append(shards, data[number*size:(number+1)*size:(number+1)*size])
	}
	rest := make([]byte, size*(e.TotalShards()-whole))
	copy(rest, data[whole*size:])
	for ; len(rest) > 0; rest = rest[size:] {
		shards = append(shards, rest[:size:size])
	}
	return shards, nil
}

// lengthFor returns the length of the shards of an object with this number of bytes.
func (e *encoder) lengthFor(bytes int64) int64 {
	row := int64(e.data) * int64(e.unit)
	return (bytes + row - 1) / row * int64(e.unit)
}

func (e *encoder) Join(dst io.Writer, shards [][]byte, outSize int) error {
	switch {
	case outSize < 0:
		return ErrInvalidInput
	case len(shards) < e.data:
		return ErrTooFewShards
	}
	needed := shards[:0]
	left := outSize
	for number := 0; number < e.data && left > 0; number++ {
		// An empty shard is a missing one, as everywhere in the interface.
		if len(shards[number]) == 0 {
			return ErrReconstructRequired
		}
		left -= len(shards[number])
		needed = shards[:number+1]
	}
	if left > 0 {
		return ErrShortData
	}
	if !even(needed) {
		return ErrShardSize
	}
	left = outSize
	for _, shard := range needed {
		part := shard[:min(left, len(shard))]
		if _, err := dst.Write(part); err != nil {
			return err
		}
		left -= len(part)
	}
	return nil
}

// even tells whether no byte of an object is at a wrong place in shards that follow each other: each
// is as long as the first one. The last may be shorter.
func even(shards [][]byte) bool {
	for number, shard := range shards {
		last := number == len(shards)-1
		if len(shard) > len(shards[0]) || len(shard) < len(shards[0]) && !last {
			return false
		}
	}
	return true
}
