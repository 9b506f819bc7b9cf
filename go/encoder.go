package paritas

import (
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// An Encoder encodes and reconstructs shards in memory. Several goroutines may use one encoder at
// the same time.
//
// Shards are slices of equal length, first those with data, then those with parity. A shard that is
// nil or empty is missing.
type Encoder interface {
	// Encode computes the parity shards from the data shards. All shards must have memory.
	Encode(shards [][]byte) error

	// EncodeIdx adds the data shard with number idx to the parity, which must be zero at first. After
	// each data shard has been added once, the parity is complete.
	EncodeIdx(dataShard []byte, idx int, parity [][]byte) error

	// Verify tells whether the parity is that of the data. All shards must be present.
	Verify(shards [][]byte) (bool, error)

	// Reconstruct computes all missing shards. An empty shard with enough capacity keeps its memory;
	// for other shards, memory is allocated. Returns ErrTooFewShards if too many are missing.
	Reconstruct(shards [][]byte) error

	// ReconstructData computes the missing data shards.
	ReconstructData(shards [][]byte) error

	// ReconstructSome computes the missing shards whose flag in required is true. There is a flag for
	// each shard, or for each data shard.
	ReconstructSome(shards [][]byte, required []bool) error

	// Update changes the parity in shards after data shards changed from the old ones in shards to the
	// new ones in newDatashards. Data shards that did not change are nil in newDatashards, and may be
	// nil in shards; at least one must have changed. Returns ErrInvalidInput if an old data shard or a
	// parity shard is missing.
	Update(shards [][]byte, newDatashards [][]byte) error

	// Split cuts data into data shards, and adds parity shards. The data is not copied, except for the
	// end that does not fill a shard. Capacity of data beyond its length is used, and overwritten with
	// zeros.
	Split(data []byte) ([][]byte, error)

	// Join writes the first outSize bytes of the data shards to dst. Returns ErrReconstructRequired if
	// one of these shards is nil, ErrShortData if they have fewer bytes, and ErrInvalidInput if outSize
	// is negative.
	Join(dst io.Writer, shards [][]byte, outSize int) error
}

// Extensions has further methods that encoders have.
type Extensions interface {
	// ShardSizeMultiple returns the unit of a shard's length in bytes: every length is a multiple of
	// it.
	ShardSizeMultiple() int
	// DataShards returns the number of data shards.
	DataShards() int
	// ParityShards returns the number of parity shards.
	ParityShards() int
	// TotalShards returns the number of all shards.
	TotalShards() int
	// AllocAligned returns memory for all shards of at least each bytes, in whole cache lines that
	// begin at multiples of 64.
	AllocAligned(each int) [][]byte
	// Spec returns the name of the code, such as "backblaze:k=10,m=4".
	Spec() string
}

type encoder struct {
	*functions
	codec        uintptr
	data, parity int
	unit, strip  int
	spec         string
	options      options
	encoding     uintptr          // the prepared call that computes the parity
	additions    []atomic.Uintptr // the prepared calls that EncodeIdx has made, by data shard
}

const maxShards = 256 // data and parity together

// New returns an encoder for the given numbers of data and parity shards. By default it has the
// matrix, and so the bytes, of klauspost/reedsolomon, Backblaze and MinIO.
func New(dataShards, parityShards int, opts ...Option) (Encoder, error) {
	made, err := newShape(dataShards, parityShards, chosen(opts))
	if err != nil {
		return nil, err
	}
	return made, nil
}

// NewCode returns an encoder for the code with the name spec, such as "10+4" or "cauchy:k=20,m=6".
// Each shard must hold either data or parity, and all shards must have equal length. Options that
// choose a matrix have no effect here.
func NewCode(spec string, opts ...Option) (Encoder, error) {
	o := chosen(opts)
	o.unit = 0
	made, err := newCode(spec, o)
	if err != nil {
		return nil, err
	}
	return made, nil
}

func newShape(data, parity int, o options) (*encoder, error) {
	switch {
	case data < 1 || parity < 0:
		return nil, ErrInvShardNum
	case data > maxShards-parity:
		return nil, ErrMaxShardNum
	case parity == 0:
		return &encoder{data: data, unit: 1, strip: 1, options: o}, nil
	case o.leopard && data > maxShards-powerOfTwo(parity):
		return nil, ErrMaxShardNum
	}
	return newCode(o.spec(data, parity), o)
}

// powerOfTwo rounds a positive number up to a power of two.
func powerOfTwo(number int) int { return 1 << bits.Len(uint(number-1)) }

// native is paritas_options.
type native struct {
	packet, threads uintptr
	split           int32
}

func newCode(spec string, o options) (*encoder, error) {
	f, err := library()
	if err != nil {
		return nil, err
	}
	if strings.IndexByte(spec, 0) >= 0 {
		return nil, fmt.Errorf("paritas: the name of a code must not contain a NUL byte; got %q", spec)
	}
	name := append([]byte(spec), 0)
	settings := &native{threads: uintptr(o.threads)}
	codec := new(uintptr)
	err = f.pinned(func(c *call) uintptr {
		status, _, _ := purego.SyscallN(f.codecNew, first(c, name), addressOf(c, settings), addressOf(c, codec))
		return status
	})
	if err != nil {
		return nil, err
	}
	e := &encoder{functions: f, codec: *codec, options: o}
	runtime.AddCleanup(e, func(codec uintptr) { purego.SyscallN(f.codecFree, codec) }, e.codec)
	e.data, e.parity = e.ask(f.dataShards), e.ask(f.parityShards)
	e.additions = make([]atomic.Uintptr, e.data)
	e.unit, e.strip = max(e.ask(f.shardUnit), o.unit), e.ask(f.strip)
	text, _, _ := purego.SyscallN(f.codecSpec, e.codec)
	e.spec = textAt(text)
	return e, e.prepareEncoding()
}

// ask returns a number that the library knows about the code.
func (e *encoder) ask(question uintptr) int {
	answer, _, _ := purego.SyscallN(question, e.codec)
	return int(answer)
}

// prepareEncoding prepares the call that computes the parity, and refuses codes that do not suit
// this interface.
func (e *encoder) prepareEncoding() error {
	made, err := e.prepare(func(made uintptr) uintptr {
		status, _, _ := purego.SyscallN(e.prepareEncode, e.codec, made)
		return status
	})
	if err != nil {
		return err
	}
	free := e.preparedFree
	runtime.AddCleanup(e, func(call uintptr) { purego.SyscallN(free, call) }, made)
	e.encoding = made
	if !e.suits() {
		return fmt.Errorf("paritas: %s: each shard must hold either data or parity, be as long as the others, and be made at once",
			e.spec)
	}
	return nil
}

// prepare returns a prepared call; the function store writes it to the address in its argument.
func (e *encoder) prepare(store func(uintptr) uintptr) (uintptr, error) {
	made := new(uintptr)
	err := e.call(func(c *call) uintptr { return store(addressOf(c, made)) })
	return *made, err
}

// suits tells whether the shards of the code suit this interface. In a code of several stages, only
// some of the shards are made at first; in some other codes, shards hold both data and parity, or
// differ in length.
func (e *encoder) suits() bool {
	sources, _, _ := purego.SyscallN(e.sources, e.encoding)
	targets, _, _ := purego.SyscallN(e.targets, e.encoding)
	if e.parity == 0 || int(sources) != e.data || int(targets) != e.parity {
		return false
	}
	for shard := range e.TotalShards() {
		length, _, _ := purego.SyscallN(e.shardLen, e.codec, uintptr(shard), uintptr(e.unit))
		if int(length) != e.unit {
			return false
		}
	}
	return true
}

func (e *encoder) DataShards() int        { return e.data }
func (e *encoder) ParityShards() int      { return e.parity }
func (e *encoder) TotalShards() int       { return e.data + e.parity }
func (e *encoder) ShardSizeMultiple() int { return e.unit }
func (e *encoder) Spec() string           { return e.spec }

func (e *encoder) Encode(shards [][]byte) error {
	size, err := e.sizeOf(shards, e.TotalShards(), false)
	if err != nil || e.parity == 0 {
		return err
	}
	return e.call(func(c *call) uintptr {
		c.sources = pointers(c.sources, shards[:e.data])
		c.targets = pointers(c.targets, shards[e.data:])
		status, _, _ := purego.SyscallN(e.run, e.encoding, first(c, c.sources), first(c, c.targets), uintptr(size))
		return status
	})
}

func (e *encoder) EncodeIdx(dataShard []byte, idx int, parity [][]byte) error {
	switch {
	case len(parity) != e.parity:
		return ErrTooFewShards
	case e.parity == 0:
		return nil
	case idx < 0 || idx >= e.data:
		return ErrInvShardNum
	}
	size, err := e.sizeOf(parity, e.parity, false)
	if err != nil {
		return err
	}
	if len(dataShard) != size {
		return ErrShardSize
	}
	addition, err := e.addition(idx)
	if err != nil {
		return err
	}
	return e.call(func(c *call) uintptr {
		c.sources = append(c.sources, unsafe.Pointer(unsafe.SliceData(dataShard)))
		c.targets = pointers(c.targets, parity)
		status, _, _ := purego.SyscallN(e.run, addition, first(c, c.sources), first(c, c.targets), uintptr(size))
		return status
	})
}

// addition returns the prepared call that adds a data shard to the parity. It is made once.
func (e *encoder) addition(idx int) (uintptr, error) {
	if made := e.additions[idx].Load(); made != 0 {
		return made, nil
	}
	made, err := e.prepare(func(made uintptr) uintptr {
		status, _, _ := purego.SyscallN(e.prepareDifference, e.codec, uintptr(idx), made)
		return status
	})
	if err != nil {
		return 0, err
	}
	if !e.additions[idx].CompareAndSwap(0, made) {
		purego.SyscallN(e.preparedFree, made)
		return e.additions[idx].Load(), nil
	}
	free := e.preparedFree
	runtime.AddCleanup(e, func(call uintptr) { purego.SyscallN(free, call) }, made)
	return made, nil
}

func (e *encoder) Verify(shards [][]byte) (bool, error) {
	size, err := e.sizeOf(shards, e.TotalShards(), false)
	if err != nil || e.parity == 0 {
		return err == nil, err
	}
	err = e.call(func(c *call) uintptr {
		c.sources = pointers(c.sources, shards)
		status, _, _ := purego.SyscallN(e.verify, e.codec, first(c, c.sources), uintptr(size))
		return status
	})
	if failed, ok := err.(*Error); ok && failed.Status == statusCheckFailed {
		return false, nil
	}
	return err == nil, err
}

func (e *encoder) Reconstruct(shards [][]byte) error {
	return e.fill(shards, func(int) bool { return true })
}

func (e *encoder) ReconstructData(shards [][]byte) error {
	return e.fill(shards, func(shard int) bool { return shard < e.data })
}

func (e *encoder) ReconstructSome(shards [][]byte, required []bool) error {
	if len(required) != e.TotalShards() && len(required) != e.data {
		return ErrInvalidInput
	}
	return e.fill(shards, func(shard int) bool { return shard < len(required) && required[shard] })
}

// fill computes the missing shards that are wanted. The caller's slices change only if that
// succeeds.
func (e *encoder) fill(shards [][]byte, wanted func(int) bool) error {
	size, err := e.sizeOf(shards, e.TotalShards(), true)
	if err != nil {
		return err
	}
	made := make(map[int][]byte)
	for number, shard := range shards {
		if len(shard) > 0 || !wanted(number) {
			continue
		}
		if cap(shard) < size {
			shard = make([]byte, size)
		}
		made[number] = shard[:size]
	}
	if len(made) == 0 {
		return nil
	}
	if e.parity == 0 {
		return ErrTooFewShards
	}
	err = e.call(func(c *call) uintptr {
		for number, shard := range shards {
			c.present = append(c.present, len(shard) > 0)
			if len(shard) == 0 {
				shard = made[number]
			}
			c.targets = append(c.targets, unsafe.Pointer(unsafe.SliceData(shard)))
		}
		status, _, _ := purego.SyscallN(e.reconstruct, e.codec, first(c, c.targets), first(c, c.present), uintptr(size))
		return status
	})
	if err != nil {
		return err
	}
	for number, shard := range made {
		shards[number] = shard
	}
	return nil
}

func (e *encoder) Update(shards [][]byte, newDatashards [][]byte) error {
	if len(newDatashards) != e.data {
		return ErrTooFewShards
	}
	size, err := e.sizeOf(shards, e.TotalShards(), true)
	if err != nil {
		return err
	}
	if changed, err := e.sizeOf(newDatashards, e.data, true); err != nil {
		return err
	} else if changed != size {
		return ErrShardSize
	}
	for number, shard := range shards {
		isRead := number >= e.data || len(newDatashards[number]) > 0
		if isRead && len(shard) == 0 {
			return ErrInvalidInput
		}
	}
	if e.parity == 0 {
		return nil
	}
	for number, changed := range newDatashards {
		if len(changed) == 0 {
			continue
		}
		if err := e.change(number, shards[number], changed, shards[e.data:]); err != nil {
			return err
		}
	}
	return nil
}

// change updates the parity after one data shard changed.
func (e *encoder) change(number int, old, changed []byte, parity [][]byte) error {
	return e.call(func(c *call) uintptr {
		c.targets = pointers(c.targets, parity)
		status, _, _ := purego.SyscallN(e.update, e.codec, uintptr(number), first(c, old), first(c, changed),
			first(c, c.targets), uintptr(len(old)))
		return status
	})
}

// call runs a call like pinned, and keeps the encoder alive meanwhile.
func (e *encoder) call(run func(*call) uintptr) error {
	err := e.pinned(run)
	runtime.KeepAlive(e)
	return err
}

// sizeOf returns the length of the shards, of which there must be count.
func (e *encoder) sizeOf(shards [][]byte, count int, mayMiss bool) (int, error) {
	if len(shards) != count {
		return 0, ErrTooFewShards
	}
	size := 0
	for _, shard := range shards {
		size = max(size, len(shard))
	}
	if size == 0 && count > 0 {
		return 0, ErrShardNoData
	}
	for _, shard := range shards {
		if len(shard) != size && !(mayMiss && len(shard) == 0) {
			return 0, ErrShardSize
		}
	}
	if size%e.unit != 0 {
		return 0, ErrInvalidShardSize
	}
	return size, nil
}
