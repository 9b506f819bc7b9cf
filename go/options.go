package paritas

import "fmt"

// An Option changes what [New] or [NewCode] makes.
type Option func(*options)

type options struct {
	family     string
	unit       int // bytes of which a shard has a multiple, even if the code takes any length
	leopard    bool
	onesForOne bool
	threads    int
	block      int // bytes of a stream at a time; 0 if none are given
	usualShard int // bytes of a shard that the caller expects; 0 if unknown
	reads      bool
	writes     bool
}

func chosen(given []Option) options {
	o := options{family: "backblaze"}
	for _, option := range given {
		option(&o)
	}
	if o.leopard { // whatever matrix is chosen beside it, as in the other package
		o.family, o.unit = "leopard8", line
	}
	for _, block := range []int{o.usualShard, 4 << 20} {
		if o.block <= 0 {
			o.block = block
		}
	}
	return o
}

// spec returns the name of the code with these numbers of shards.
func (o options) spec(data, parity int) string {
	family := o.family
	if o.onesForOne && parity == 1 {
		family = "isal-rs" // whose first parity shard is the sum of the data shards
	}
	return fmt.Sprintf("%s:k=%d,m=%d", family, data, parity)
}

// WithMaxGoroutines bounds the number of threads of a call. Without it, there are as many as
// processors. A single call uses another thread for every MiB of shards; in a row of calls that follow
// each other within 20 microseconds, for every 128 KiB. A number below 1 is ignored.
func WithMaxGoroutines(n int) Option {
	return func(o *options) {
		if n > 0 {
			o.threads = n
		}
	}
}

// WithAutoGoroutines tells the length of the shards. Streams are handled in blocks of this length if
// [WithStreamBlockSize] sets no other. The library chooses the number of threads for each call by
// itself.
func WithAutoGoroutines(shardSize int) Option {
	return func(o *options) { o.usualShard = shardSize }
}

// WithMinSplitSize has no effect: the library decides how much work each thread needs, as
// [WithMaxGoroutines] describes.
func WithMinSplitSize(int) Option { return func(*options) {} }

// WithInversionCache has no effect: the library always keeps the programs that reconstruct shards.
func WithInversionCache(bool) Option { return func(*options) {} }

// WithCauchyMatrix chooses the Cauchy matrix that klauspost/reedsolomon has by this name: the family
// isal-cauchy.
func WithCauchyMatrix() Option { return func(o *options) { o.family = "isal-cauchy" } }

// WithJerasureMatrix chooses the Vandermonde matrix of Jerasure: the family reed-solomon.
func WithJerasureMatrix() Option { return func(o *options) { o.family = "reed-solomon" } }

// WithLeopardGF chooses the code that Leopard and klauspost/reedsolomon have over bytes: the family
// leopard8. The length of shards is a multiple of 64 bytes. The number of data shards, plus that of
// parity shards rounded up to a power of two, is at most 256: for more, [New] returns ErrMaxShardNum.
func WithLeopardGF(enabled bool) Option {
	return func(o *options) { o.leopard = enabled }
}

// WithFastOneParityMatrix makes the parity shard the XOR of the data shards if there is one parity
// shard.
func WithFastOneParityMatrix() Option { return func(o *options) { o.onesForOne = true } }

// WithStreamBlockSize sets the number of bytes of each stream that are handled at a time. The default
// is the length in [WithAutoGoroutines], or else 4 MiB. It is rounded up to a multiple of the code's
// unit. A call needs a block for every shard; the encoder keeps this memory for later calls.
func WithStreamBlockSize(n int) Option { return func(o *options) { o.block = n } }

// WithConcurrentStreams reads and writes all streams of a block at the same time.
func WithConcurrentStreams(enabled bool) Option {
	return func(o *options) { o.reads, o.writes = enabled, enabled }
}

// WithConcurrentStreamReads reads all streams of a block at the same time.
func WithConcurrentStreamReads(enabled bool) Option {
	return func(o *options) { o.reads = enabled }
}

// WithConcurrentStreamWrites writes all streams of a block at the same time.
func WithConcurrentStreamWrites(enabled bool) Option {
	return func(o *options) { o.writes = enabled }
}
