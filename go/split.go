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
	left := outSize
	for _, shard := range shards[:e.data] {
		if left <= 0 {
			break
		}
		if shard == nil {
			return ErrReconstructRequired
		}
		left -= len(shard)
	}
	if left > 0 {
		return ErrShortData
	}
	left = outSize
	for _, shard := range shards[:e.data] {
		part := shard[:min(left, len(shard))]
		if len(part) == 0 {
			continue
		}
		if _, err := dst.Write(part); err != nil {
			return err
		}
		left -= len(part)
	}
	return nil
}
