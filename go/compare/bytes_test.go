// Package compare holds package paritas against github.com/klauspost/reedsolomon, whose interface it
// has. It is a module of its own, so that programs that use paritas do not get the other package.
package compare

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/reedsolomon"
	paritas "github.com/paritas/paritas/go"
)

// Either package's interface holds the other's encoders: programs only change an import.
var (
	_ reedsolomon.Encoder       = paritas.Encoder(nil)
	_ paritas.Encoder           = reedsolomon.Encoder(nil)
	_ reedsolomon.StreamEncoder = paritas.StreamEncoder(nil)
	_ paritas.StreamEncoder     = reedsolomon.StreamEncoder(nil)
)

// Names that both packages have.
var (
	_ = []paritas.Option{paritas.WithAutoGoroutines(1), paritas.WithMinSplitSize(1), paritas.WithInversionCache(true)}
	_ = []reedsolomon.Option{reedsolomon.WithAutoGoroutines(1), reedsolomon.WithMinSplitSize(1), reedsolomon.WithInversionCache(true)}
	_ = []func(int, int) [][]byte{paritas.AllocAligned, reedsolomon.AllocAligned}
	_ = []fmt.Stringer{paritas.StreamReadError{}, reedsolomon.StreamReadError{}, paritas.StreamWriteError{}, reedsolomon.StreamWriteError{}}
)

// alike has our error for each of theirs. Programs compare errors with ==.
var alike = map[error]error{
	nil:                                nil,
	reedsolomon.ErrInvShardNum:         paritas.ErrInvShardNum,
	reedsolomon.ErrMaxShardNum:         paritas.ErrMaxShardNum,
	reedsolomon.ErrTooFewShards:        paritas.ErrTooFewShards,
	reedsolomon.ErrShardNoData:         paritas.ErrShardNoData,
	reedsolomon.ErrShardSize:           paritas.ErrShardSize,
	reedsolomon.ErrInvalidShardSize:    paritas.ErrInvalidShardSize,
	reedsolomon.ErrInvalidInput:        paritas.ErrInvalidInput,
	reedsolomon.ErrShortData:           paritas.ErrShortData,
	reedsolomon.ErrReconstructRequired: paritas.ErrReconstructRequired,
	reedsolomon.ErrReconstructMismatch: paritas.ErrReconstructMismatch,
	reedsolomon.ErrNotSupported:        paritas.ErrNotSupported,
}

func expectAlike(t *testing.T, what string, our, their error) {
	t.Helper()
	if expected, ok := alike[their]; !ok || our != expected {
		t.Errorf("%s: %v; reedsolomon: %v", what, our, their)
	}
}

var shapes = [][2]int{{1, 1}, {2, 1}, {4, 2}, {6, 3}, {10, 4}, {17, 3}, {20, 4}, {32, 32}, {50, 20}, {128, 128}, {200, 56}}

var matrices = map[string]struct {
	ours   []paritas.Option
	theirs []reedsolomon.Option
}{
	"the usual one": {},
	"Cauchy":        {[]paritas.Option{paritas.WithCauchyMatrix()}, []reedsolomon.Option{reedsolomon.WithCauchyMatrix()}},
	"Jerasure":      {[]paritas.Option{paritas.WithJerasureMatrix()}, []reedsolomon.Option{reedsolomon.WithJerasureMatrix()}},
	"Leopard":       {[]paritas.Option{paritas.WithLeopardGF(true)}, []reedsolomon.Option{reedsolomon.WithLeopardGF(true)}},
	"Leopard after all": {
		[]paritas.Option{paritas.WithLeopardGF(true), paritas.WithCauchyMatrix()},
		[]reedsolomon.Option{reedsolomon.WithLeopardGF(true), reedsolomon.WithCauchyMatrix()},
	},
	"Leopard not after all": {
		[]paritas.Option{paritas.WithLeopardGF(true), paritas.WithLeopardGF(false)},
		[]reedsolomon.Option{reedsolomon.WithLeopardGF(true), reedsolomon.WithLeopardGF(false)},
	},
	"one parity": {[]paritas.Option{paritas.WithFastOneParityMatrix()}, []reedsolomon.Option{reedsolomon.WithFastOneParityMatrix()}},
}

func TestBytesAreEqual(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, options := range matrices {
		for _, shape := range shapes {
			if (name == "Leopard" || name == "Leopard after all") && shape == [2]int{200, 56} {
				continue // theirs panics, ours refuses it
			}
			ours, err := paritas.New(shape[0], shape[1], options.ours...)
			if err != nil {
				t.Fatalf("%s, %v: %v", name, shape, err)
			}
			theirs, err := reedsolomon.New(shape[0], shape[1], options.theirs...)
			if err != nil {
				t.Fatalf("%s, %v: %v", name, shape, err)
			}
			for _, length := range []int{1, 63, 1000, 66_000} {
				object := make([]byte, length)
				for i := range object {
					object[i] = byte(random.Uint32())
				}
				compare(t, ours, theirs, object)
			}
		}
	}
}

// compare has each package split and encode an object, and reconstruct what the other one made.
func compare(t *testing.T, ours, theirs reedsolomon.Encoder, object []byte) {
	t.Helper()
	made := func(encoder reedsolomon.Encoder) [][]byte {
		shards, err := encoder.Split(bytes.Clone(object))
		if err == nil {
			err = encoder.Encode(shards)
		}
		if err != nil {
			t.Fatal(err)
		}
		return shards
	}
	our, their := made(ours), made(theirs)
	if !slices.EqualFunc(our, their, bytes.Equal) {
		t.Fatalf("%d bytes: the shards differ", len(object))
	}
	whole := slices.Clone(their)
	for _, encoder := range []reedsolomon.Encoder{ours, theirs} {
		for lost := range min(len(whole)/2, 3) {
			our[lost*2] = nil
		}
		if len(whole)-ours.(paritas.Extensions).DataShards() < 3 {
			our = slices.Clone(whole)
			our[0] = nil
		}
		if err := encoder.Reconstruct(our); err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(our, whole, bytes.Equal) {
			t.Fatalf("%d bytes: other shards came back", len(object))
		}
	}
}

// Both packages answer the same mistakes with the same error, or without one.
func TestMistakesAreAnsweredAlike(t *testing.T) {
	ours, _ := paritas.New(4, 2)
	theirs, _ := reedsolomon.New(4, 2)
	whole := func() [][]byte {
		shards, _ := theirs.Split(make([]byte, 400))
		_ = theirs.Encode(shards)
		return shards
	}
	without := func(lost ...int) func() [][]byte {
		return func() [][]byte {
			shards := whole()
			for _, number := range lost {
				shards[number] = nil
			}
			return shards
		}
	}
	cases := map[string]func() [][]byte{
		"whole":       whole,
		"no shards":   func() [][]byte { return nil },
		"all empty":   func() [][]byte { return make([][]byte, 6) },
		"five shards": func() [][]byte { return whole()[:5] },
		"one short":   func() [][]byte { shards := whole(); shards[1] = shards[1][:99]; return shards },
		"two lost":    without(0, 5),
		"three lost":  without(0, 1, 5),
		"parity lost": without(4, 5),
		"four lost":   without(0, 1, 4, 5),
	}
	fresh := func(lengths ...int) [][]byte {
		made := make([][]byte, 4)
		for number, length := range lengths {
			made[number] = make([]byte, length)
		}
		return made
	}
	calls := map[string]func(reedsolomon.Encoder, [][]byte) error{
		"Encode":          func(e reedsolomon.Encoder, s [][]byte) error { return e.Encode(s) },
		"Verify":          func(e reedsolomon.Encoder, s [][]byte) error { _, err := e.Verify(s); return err },
		"Reconstruct":     func(e reedsolomon.Encoder, s [][]byte) error { return e.Reconstruct(s) },
		"ReconstructData": func(e reedsolomon.Encoder, s [][]byte) error { return e.ReconstructData(s) },
		"ReconstructSome": func(e reedsolomon.Encoder, s [][]byte) error { return e.ReconstructSome(s, make([]bool, 6)) },
		"Join":            func(e reedsolomon.Encoder, s [][]byte) error { return e.Join(&bytes.Buffer{}, s, 400) },
		"Join too much":   func(e reedsolomon.Encoder, s [][]byte) error { return e.Join(&bytes.Buffer{}, s, 401) },
		"five flags":      func(e reedsolomon.Encoder, s [][]byte) error { return e.ReconstructSome(s, make([]bool, 5)) },
		"Update":          func(e reedsolomon.Encoder, s [][]byte) error { return e.Update(s, fresh(100)) },
		"Update nothing":  func(e reedsolomon.Encoder, s [][]byte) error { return e.Update(s, fresh()) },
		"uneven Update":   func(e reedsolomon.Encoder, s [][]byte) error { return e.Update(s, fresh(100, 99)) },
		"Update of three": func(e reedsolomon.Encoder, s [][]byte) error { return e.Update(s, fresh()[:3]) },
		"EncodeIdx":       func(e reedsolomon.Encoder, s [][]byte) error { return e.EncodeIdx(make([]byte, 100), 0, s) },
		"EncodeIdx 4": func(e reedsolomon.Encoder, s [][]byte) error {
			return e.EncodeIdx(make([]byte, 100), 4, s[len(s)/3*2:])
		},
		"short EncodeIdx": func(e reedsolomon.Encoder, s [][]byte) error { return e.EncodeIdx(make([]byte, 9), 0, s[len(s)/3*2:]) },
		"Split of nothing": func(e reedsolomon.Encoder, s [][]byte) error {
			_, err := e.Split(nil)
			return err
		},
	}
	for call, run := range calls {
		for name, shards := range cases {
			expectAlike(t, call+" of "+name, run(ours, shards()), run(theirs, shards()))
		}
	}
}

// Both packages split a stream of the given size into the same shards.
func TestStreamsAreSplitAlike(t *testing.T) {
	ours, _ := paritas.NewStream(4, 2)
	theirs, _ := reedsolomon.NewStream(4, 2)
	for size := range 50 {
		split := func(streams reedsolomon.StreamEncoder) (shards [4]string, err error) {
			writers, buffers := make([]io.Writer, 4), make([]bytes.Buffer, 4)
			for number := range buffers {
				writers[number] = &buffers[number]
			}
			err = streams.Split(bytes.NewReader(bytes.Repeat([]byte{1}, size)), writers, int64(size))
			for number := range buffers {
				shards[number] = buffers[number].String()
			}
			return shards, err
		}
		our, err := split(ours)
		their, theirErr := split(theirs)
		expectAlike(t, fmt.Sprint("split ", size), err, theirErr)
		if our != their {
			t.Errorf("%d bytes are split into %q; reedsolomon: %q", size, our, their)
		}
	}
}

// Both packages leave the same bytes of every stream to be read after Join.
func TestJoinReadsAlike(t *testing.T) {
	ours, _ := paritas.NewStream(4, 2)
	theirs, _ := reedsolomon.NewStream(4, 2)
	for outSize := range int64(41) {
		join := func(streams reedsolomon.StreamEncoder) (left [4]int, err error) {
			readers, shards := make([]io.Reader, 4), [4]*bytes.Reader{}
			for number := range shards {
				shards[number] = bytes.NewReader(make([]byte, 10))
				readers[number] = shards[number]
			}
			err = streams.Join(io.Discard, readers, outSize)
			for number, shard := range shards {
				left[number] = shard.Len()
			}
			return left, err
		}
		our, err := join(ours)
		their, theirErr := join(theirs)
		expectAlike(t, fmt.Sprint("join ", outSize), err, theirErr)
		if our != their {
			t.Errorf("after joining %d bytes, %v are left; reedsolomon: %v", outSize, our, their)
		}
	}
}

func TestNumbersOfShardsAreRefusedAlike(t *testing.T) {
	for _, shape := range [][2]int{{0, 1}, {1, 0}, {-1, 2}, {4, -1}, {256, 0}, {255, 1}, {0, 0}} {
		_, our := paritas.New(shape[0], shape[1])
		_, their := reedsolomon.New(shape[0], shape[1])
		expectAlike(t, fmt.Sprint(shape), our, their)
	}
	_, our := paritas.NewStreamC(200, 57, true, false)
	_, their := reedsolomon.NewStreamC(200, 57, true, false)
	expectAlike(t, "streams", our, their)
}

// Both packages answer mistakes with streams with the same error.
func TestMistakesWithStreamsAreAnsweredAlike(t *testing.T) {
	ours, _ := paritas.NewStream(4, 2)
	theirs, _ := reedsolomon.NewStream(4, 2)
	readers := func(lengths ...int) []io.Reader {
		made := make([]io.Reader, len(lengths))
		for number, length := range lengths {
			if length >= 0 {
				made[number] = bytes.NewReader(make([]byte, length))
			}
		}
		return made
	}
	writers := func(count int) []io.Writer { return slices.Repeat([]io.Writer{io.Discard}, count) }
	calls := map[string]func(reedsolomon.StreamEncoder) error{
		"whole":    func(s reedsolomon.StreamEncoder) error { return s.Encode(readers(9, 9, 9, 9), writers(2)) },
		"empty":    func(s reedsolomon.StreamEncoder) error { return s.Encode(readers(0, 0, 0, 0), writers(2)) },
		"uneven":   func(s reedsolomon.StreamEncoder) error { return s.Encode(readers(9, 9, 8, 9), writers(2)) },
		"three":    func(s reedsolomon.StreamEncoder) error { return s.Encode(readers(9, 9, 9), writers(2)) },
		"one":      func(s reedsolomon.StreamEncoder) error { return s.Encode(readers(9, 9, 9, 9), writers(1)) },
		"verify":   func(s reedsolomon.StreamEncoder) error { _, err := s.Verify(readers(9, 9)); return err },
		"mismatch": func(s reedsolomon.StreamEncoder) error { return s.Reconstruct(readers(9, 9, 9, 9, 9, 9), writers(6)) },
		"too few":  func(s reedsolomon.StreamEncoder) error { return s.Reconstruct(readers(9, 9), writers(6)) },
		"lost": func(s reedsolomon.StreamEncoder) error {
			return s.Reconstruct(readers(9, 9, -1, -1, -1, 9), append(make([]io.Writer, 2), append(writers(3), nil)...))
		},
		"split":     func(s reedsolomon.StreamEncoder) error { return s.Split(readers(9)[0], writers(3), 9) },
		"split 0":   func(s reedsolomon.StreamEncoder) error { return s.Split(readers(9)[0], writers(4), 0) },
		"short":     func(s reedsolomon.StreamEncoder) error { return s.Split(readers(9)[0], writers(4), 99) },
		"join":      func(s reedsolomon.StreamEncoder) error { return s.Join(io.Discard, readers(9, 9, 9, 9), 37) },
		"join cut":  func(s reedsolomon.StreamEncoder) error { return s.Join(io.Discard, readers(9, 8, 9, 9), 36) },
		"join few":  func(s reedsolomon.StreamEncoder) error { return s.Join(io.Discard, readers(9, 9, 9), 1) },
		"join less": func(s reedsolomon.StreamEncoder) error { return s.Join(io.Discard, readers(9, 9, 9, 9), -1) },
	}
	for call, run := range calls {
		expectAlike(t, call, run(ours), run(theirs))
	}
}
