// Package compare holds package paritas against github.com/klauspost/reedsolomon, whose interface it
// has. It is a module of its own, so that programs that use paritas do not get the other package.
package compare

import (
	"bytes"
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

var shapes = [][2]int{{1, 1}, {2, 1}, {4, 2}, {6, 3}, {10, 4}, {17, 3}, {20, 4}, {32, 32}, {50, 20}, {128, 128}, {200, 56}}

var matrices = map[string]struct {
	ours   []paritas.Option
	theirs []reedsolomon.Option
}{
	"the usual one": {},
	"Cauchy":        {[]paritas.Option{paritas.WithCauchyMatrix()}, []reedsolomon.Option{reedsolomon.WithCauchyMatrix()}},
	"Jerasure":      {[]paritas.Option{paritas.WithJerasureMatrix()}, []reedsolomon.Option{reedsolomon.WithJerasureMatrix()}},
	"Leopard":       {[]paritas.Option{paritas.WithLeopardGF(true)}, []reedsolomon.Option{reedsolomon.WithLeopardGF(true)}},
	"one parity":    {[]paritas.Option{paritas.WithFastOneParityMatrix()}, []reedsolomon.Option{reedsolomon.WithFastOneParityMatrix()}},
}

func TestBytesAreEqual(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, options := range matrices {
		for _, shape := range shapes {
			if name == "Leopard" && shape == [2]int{200, 56} {
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

// Both packages answer the same mistakes in the same way: with an error, or without one.
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
	calls := map[string]func(reedsolomon.Encoder, [][]byte) error{
		"Encode":          func(e reedsolomon.Encoder, s [][]byte) error { return e.Encode(s) },
		"Verify":          func(e reedsolomon.Encoder, s [][]byte) error { _, err := e.Verify(s); return err },
		"Reconstruct":     func(e reedsolomon.Encoder, s [][]byte) error { return e.Reconstruct(s) },
		"ReconstructData": func(e reedsolomon.Encoder, s [][]byte) error { return e.ReconstructData(s) },
		"ReconstructSome": func(e reedsolomon.Encoder, s [][]byte) error { return e.ReconstructSome(s, make([]bool, 6)) },
		"Join":            func(e reedsolomon.Encoder, s [][]byte) error { return e.Join(&bytes.Buffer{}, s, 400) },
	}
	for call, run := range calls {
		for name, shards := range cases {
			our, their := run(ours, shards()), run(theirs, shards())
			if (our == nil) != (their == nil) {
				t.Errorf("%s of %s: %v; reedsolomon: %v", call, name, our, their)
			}
		}
	}
}
