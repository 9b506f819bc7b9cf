package paritas

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// A StreamEncoder encodes and reconstructs shards that are streams, a block at a time. All streams
// must have the same number of bytes. If a stream fails, the error is a [StreamReadError] or a
// [StreamWriteError]; Split and Join return the error of the stream itself.
type StreamEncoder interface {
	// Encode reads the data shards and writes the parity shards.
	Encode(data []io.Reader, parity []io.Writer) error

	// Verify tells whether the parity is that of the data.
	Verify(shards []io.Reader) (bool, error)

	// Reconstruct reads the shards in valid and writes the shards in fill. A missing shard is nil in
	// valid; it is computed if it is not nil in fill.
	Reconstruct(valid []io.Reader, fill []io.Writer) error

	// Split cuts size bytes of data into data shards, and leaves the bytes after them unread. The last
	// shards are filled up with zeros. If data ends before size bytes, it returns ErrShortData.
	Split(data io.Reader, dst []io.Writer, size int64) error

	// Join writes the first outSize bytes of the data shards to dst, and reads nothing after them. If
	// streams turn out to differ in length, so that bytes may be at wrong places, it returns ErrShardSize
	// after it has written them. A stream that was cut is noticed if the whole of an object is joined; if
	// only its beginning is, a first stream that was cut may go unnoticed.
	Join(dst io.Writer, shards []io.Reader, outSize int64) error
}

type streams struct {
	*encoder
	block int        // bytes of each stream that are handled at a time
	rooms *sync.Pool // a room for every call that runs at the same time, kept for later calls
}

// A room holds a block of every stream. Memory for blocks is large, and to get it takes longer than to
// encode short streams.
type room struct {
	memory  [][]byte
	shards  [][]byte // the parts of memory that are in use
	lengths []int
}

// streaming returns an encoder that handles streams in blocks of the length in its options, rounded up.
func streaming(e *encoder) streams {
	multiple := e.strip
	for multiple%e.unit != 0 {
		multiple += e.strip
	}
	block := (e.options.block + multiple - 1) / multiple * multiple
	count := e.TotalShards()
	rooms := &sync.Pool{New: func() any {
		return &room{AllocAligned(count, block), make([][]byte, count), make([]int, count)}
	}}
	return streams{e, block, rooms}
}

// NewStream returns an encoder of streams, for the code that [New] chooses for the same arguments.
func NewStream(dataShards, parityShards int, opts ...Option) (StreamEncoder, error) {
	made, err := newShape(dataShards, parityShards, chosen(opts))
	if err != nil {
		return nil, err
	}
	return streaming(made), nil
}

// NewStreamC returns an encoder of streams like [NewStream]. The flags say whether all streams of a
// block are read, or written, at the same time.
func NewStreamC(dataShards, parityShards int, conReads, conWrites bool, opts ...Option) (StreamEncoder, error) {
	concurrent := []Option{WithConcurrentStreamReads(conReads), WithConcurrentStreamWrites(conWrites)}
	return NewStream(dataShards, parityShards, slices.Concat(opts, concurrent)...)
}

// NewStreamCode returns an encoder of streams for the code with the name spec, like [NewCode].
func NewStreamCode(spec string, opts ...Option) (StreamEncoder, error) {
	o := chosen(opts)
	o.unit = 0
	made, err := newCode(spec, o)
	if err != nil {
		return nil, err
	}
	return streaming(made), nil
}

func (s streams) Encode(data []io.Reader, parity []io.Writer) error {
	if len(data) != s.data || len(parity) != s.parity {
		return ErrTooFewShards
	}
	if err := present(data); err != nil {
		return err
	}
	readers := append(append(make([]io.Reader, 0, s.TotalShards()), data...), make([]io.Reader, s.parity)...)
	return s.blocks(readers, func(shards [][]byte, size int) error {
		for number := s.data; number < len(shards); number++ {
			shards[number] = shards[number][:size]
		}
		if err := s.encoder.Encode(shards); err != nil {
			return err
		}
		return s.write(parity, shards[s.data:])
	})
}

func (s streams) Verify(shards []io.Reader) (bool, error) {
	if len(shards) != s.TotalShards() {
		return false, ErrTooFewShards
	}
	if err := present(shards); err != nil {
		return false, err
	}
	differs := errors.New("the parity differs")
	err := s.blocks(shards, func(shards [][]byte, _ int) error {
		right, err := s.encoder.Verify(shards)
		if err == nil && !right {
			return differs
		}
		return err
	})
	if err == differs {
		return false, nil
	}
	return err == nil, err
}

func (s streams) Reconstruct(valid []io.Reader, fill []io.Writer) error {
	if len(valid) != s.TotalShards() || len(fill) != s.TotalShards() {
		return ErrTooFewShards
	}
	wanted := make([]bool, len(fill))
	some := false
	for number := range valid {
		wanted[number] = fill[number] != nil
		some = some || wanted[number]
		if valid[number] != nil && fill[number] != nil {
			return ErrReconstructMismatch
		}
	}
	if !some {
		return nil
	}
	return s.blocks(valid, func(shards [][]byte, _ int) error {
		if err := s.encoder.ReconstructSome(shards, wanted); err != nil {
			return err
		}
		return s.write(fill, shards)
	})
}

func (s streams) Split(data io.Reader, dst []io.Writer, size int64) error {
	switch {
	case size <= 0:
		return ErrShortData
	case len(dst) != s.data:
		return ErrInvShardNum
	}
	for number, writer := range dst {
		if writer == nil {
			return StreamWriteError{Err: ErrShardNoData, Stream: number}
		}
	}
	each := s.lengthFor(size)
	for number, writer := range dst {
		have := min(max(size-int64(number)*each, 0), each)
		if _, err := io.CopyN(writer, data, have); err == io.EOF {
			return ErrShortData
		} else if err != nil {
			return err
		}
		if _, err := io.CopyN(writer, zeros{}, each-have); err != nil {
			return err
		}
	}
	return nil
}

func (s streams) Join(dst io.Writer, shards []io.Reader, outSize int64) error {
	switch {
	case outSize < 0:
		return ErrShortData
	case len(shards) < s.data:
		return ErrTooFewShards
	}
	left, first, uneven := outSize, int64(0), false
	for number, shard := range shards[:s.data] {
		if left <= 0 {
			break
		}
		if shard == nil {
			return StreamReadError{Err: ErrShardNoData, Stream: number}
		}
		n, err := io.CopyN(dst, shard, left)
		if err != nil && err != io.EOF {
			return err
		}
		left -= n
		if number == 0 {
			first = n
		}
		// A stream has ended if bytes are left to write.
		cut := left > 0 && (n < first || n%int64(s.unit) != 0)
		uneven = uneven || n > first || cut
	}
	switch {
	case left > 0:
		return ErrShortData
	case uneven:
		return ErrShardSize
	}
	return nil
}

// blocks reads a block of every stream, until they end. A shard whose stream is nil is empty; its
// memory has room for a block.
func (s streams) blocks(readers []io.Reader, each func(shards [][]byte, size int) error) error {
	r := s.rooms.Get().(*room)
	defer s.rooms.Put(r)
	for some := false; ; some = true {
		size, err := s.read(readers, r)
		switch {
		case err != nil:
			return err
		case size == 0 && some:
			return nil
		case size == 0:
			return ErrShardNoData
		}
		if err := each(r.shards, size); err != nil || size < s.block {
			return err
		}
	}
}

// read fills the shards of a room from streams, and returns their length.
func (s streams) read(readers []io.Reader, r *room) (int, error) {
	clear(r.lengths)
	err := each(s.options.reads, len(readers), func(number int) error {
		if readers[number] == nil {
			return nil
		}
		n, err := io.ReadFull(readers[number], r.memory[number])
		r.lengths[number] = n
		if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		return StreamReadError{Err: err, Stream: number}
	})
	if err != nil {
		return 0, err
	}
	size := -1
	for number, reader := range readers {
		r.shards[number] = r.memory[number][:r.lengths[number]]
		if reader == nil {
			continue
		}
		if size < 0 {
			size = r.lengths[number]
		}
		if r.lengths[number] != size {
			return 0, ErrShardSize
		}
	}
	if size < 0 {
		return 0, ErrShardNoData
	}
	return size, nil
}

// write writes shards to those streams that are not nil.
func (s streams) write(writers []io.Writer, shards [][]byte) error {
	return each(s.options.writes, len(writers), func(number int) error {
		if writers[number] == nil {
			return nil
		}
		n, err := writers[number].Write(shards[number])
		if err == nil && n < len(shards[number]) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return StreamWriteError{Err: err, Stream: number}
		}
		return nil
	})
}

// each calls run for the numbers below count, all at once if concurrent is set. It returns the
// first error.
func each(concurrent bool, count int, run func(number int) error) error {
	if !concurrent {
		for number := range count {
			if err := run(number); err != nil {
				return err
			}
		}
		return nil
	}
	failures := make([]error, count)
	var group sync.WaitGroup
	for number := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			failures[number] = run(number)
		}()
	}
	group.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func present(streams []io.Reader) error {
	for number, stream := range streams {
		if stream == nil {
			return StreamReadError{Err: ErrShardNoData, Stream: number}
		}
	}
	return nil
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(target []byte) (int, error) {
	clear(target)
	return len(target), nil
}
